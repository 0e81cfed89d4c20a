//! Streaming memory bandwidth of some CPUs together.

use std::ffi::c_void;
use std::hint::black_box;
use std::io;
use std::mem::MaybeUninit;
use std::time::Duration;

use super::crew::{self, Member};
use super::limits;
use super::report::{MemoryBandwidth, Reading};
use super::stats::{round, share, to_f64, to_u32};
use super::time::{raw_ns, thread_cpu_ns};

/// Buffers in sum over the caches in sum: STREAM's rule is four times the last-level cache for each array.
const TIMES_CACHE: u64 = 4;
/// At least this much in sum, where the cache is small or unknown.
const LEAST_BYTES: u64 = 64 << 20;
/// At most this much per thread: touching more would take longer than the probe may.
const MOST_PER_THREAD: u64 = 1 << 30;
/// All buffers take at most this part of the memory that is available.
const PART_OF_AVAILABLE: u64 = 8;
/// Smaller buffers fit a core's private caches; no bandwidth of memory could be told from them.
const LEAST_PER_THREAD: u64 = 8 << 20;
/// Words between two looks at the clock: 1 MiB, about 0.1 ms.
const BLOCK_WORDS: usize = 1 << 17;
const WORD_BYTES: u64 = 8;

/// Stream on all of `cpus` at once, for about `time`.
pub(super) fn measure(cpus: &[u32], time: Duration) -> io::Result<MemoryBandwidth> {
    let caches = limits::last_level_cache(cpus);
    let wanted = match limits::memory_available() {
        Ok(available) => bytes_per_thread(caches.as_ref().ok().copied(), available, cpus.len() as u64),
        Err(reason) => Err(reason),
    };
    let bytes = match wanted {
        Ok(bytes) => bytes,
        Err(reason) => return Ok(nothing(cpus.len(), &reason)),
    };
    let part_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX) / 4;
    let members = crew::on_each(cpus, &|member: &Member<'_>| stream(member, bytes, part_ns))?;
    let mut streams = Vec::with_capacity(members.len());
    for (cpu, result) in members {
        // A sum without one thread would be a lower bandwidth with no visible cause.
        match result.map_err(|error| error.to_string()).flatten() {
            Ok(stream) => streams.push(stream),
            Err(reason) => return Ok(nothing(cpus.len(), &format!("CPU {cpu}: {reason}"))),
        }
    }
    let touched: u64 = streams.iter().map(|stream| stream.buffer_bytes).sum();
    let cpu_shares: f64 = streams.iter().map(|stream| stream.cpu_share).sum();
    Ok(MemoryBandwidth {
        threads: to_u32(streams.len() as u64),
        buffer_bytes_per_thread: streams
            .iter()
            .map(|stream| stream.buffer_bytes)
            .min()
            .map_or_else(|| Reading::absent("no thread"), Reading::Value),
        buffers_per_llc: match caches {
            Ok(bytes) => Reading::Value(round(to_f64(touched) / to_f64(bytes), 3)),
            Err(reason) => Reading::Absent(reason),
        },
        read_gb_per_s: Reading::Value(together(streams.iter().map(|stream| stream.read))),
        add_gb_per_s: Reading::Value(together(streams.iter().map(|stream| stream.add))),
        cpu_share: Reading::Value(round(cpu_shares / to_f64(streams.len() as u64), 4)),
    })
}

/// How large each thread's buffer should be.
pub(super) fn bytes_per_thread(caches: Option<u64>, available: u64, threads: u64) -> Result<u64, String> {
    let threads = threads.max(1);
    let wanted = caches.unwrap_or(0).saturating_mul(TIMES_CACHE).max(LEAST_BYTES);
    let per_thread = (wanted / threads).clamp(LEAST_PER_THREAD, MOST_PER_THREAD);
    let affordable = available / PART_OF_AVAILABLE / threads;
    if affordable < LEAST_PER_THREAD {
        return Err(format!(
            "too little free memory: {} MiB for {threads} threads",
            (available / PART_OF_AVAILABLE) >> 20
        ));
    }
    Ok(per_thread.min(affordable))
}

fn nothing(threads: usize, reason: &str) -> MemoryBandwidth {
    MemoryBandwidth {
        threads: to_u32(threads as u64),
        buffer_bytes_per_thread: Reading::absent(reason),
        buffers_per_llc: Reading::absent(reason),
        read_gb_per_s: Reading::absent(reason),
        add_gb_per_s: Reading::absent(reason),
        cpu_share: Reading::absent(reason),
    }
}

/// What one thread streamed.
struct Stream {
    buffer_bytes: u64,
    read: Span,
    add: Span,
    cpu_share: f64,
}

/// Bytes that one thread moved, and from when to when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) bytes: u64,
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
}

/// What all threads moved together, bytes per ns, that is GB/s: over the time from the first start to the last
/// end. The sum of each thread's own rate would be too high wherever their times do not overlap, as when several
/// have to share a CPU.
pub(super) fn together(spans: impl Iterator<Item = Span>) -> f64 {
    let (mut bytes, mut start_ns, mut end_ns) = (0, u64::MAX, 0);
    for span in spans {
        bytes += span.bytes;
        start_ns = start_ns.min(span.start_ns);
        end_ns = end_ns.max(span.end_ns);
    }
    round(to_f64(bytes) / to_f64(end_ns.saturating_sub(start_ns).max(1)), 3)
}

/// One thread's part. All threads read at the same time, and add at the same time.
fn stream(member: &Member<'_>, bytes: u64, part_ns: u64) -> Result<Stream, String> {
    let touched = touch(bytes, member.started_ns().saturating_add(2 * part_ns));
    let mut buffer = touched.unwrap_or_default();
    // Also without a buffer: the others wait here for every member.
    member.meet();
    let (read, read_cpu_ns) = phase(&mut buffer, part_ns, |block| {
        black_box(sum(block));
        WORD_BYTES * block.len() as u64
    });
    member.meet();
    let (add, add_cpu_ns) = phase(&mut buffer, part_ns, add);
    if buffer.is_empty() {
        return Err("no buffer could be allocated".to_owned());
    }
    let wall_ns = [read, add].iter().map(|span| span.end_ns.saturating_sub(span.start_ns)).sum();
    Ok(Stream {
        buffer_bytes: WORD_BYTES * buffer.len() as u64,
        read,
        add,
        cpu_share: share(read_cpu_ns + add_cpu_ns, wall_ns),
    })
}

/// A buffer of up to `bytes`, every page of it written to, so that no page fault falls into the measurement and
/// no read is served from the one shared page of zeros. Touching stops at the deadline, so the buffer may be
/// smaller than asked for; `None` when there is no memory.
fn touch(bytes: u64, deadline_ns: u64) -> Option<Vec<u64>> {
    let words = usize::try_from(bytes / WORD_BYTES).ok()?;
    let mut buffer: Vec<u64> = Vec::new();
    buffer.try_reserve_exact(words).ok()?;
    advise_huge_pages(buffer.spare_capacity_mut());
    while buffer.len() < words {
        let next = buffer.len().saturating_add(BLOCK_WORDS).min(words);
        buffer.resize(next, 1);
        if raw_ns() > deadline_ns {
            break;
        }
    }
    Some(buffer)
}

/// Ask for huge pages, so that it is memory which is measured and not page walks (under a hypervisor twice as
/// deep), and so that touching takes a fraction of the time. The kernel may decline: nothing depends on it.
#[expect(unsafe_code, reason = "madvise takes a raw range")]
fn advise_huge_pages(area: &mut [MaybeUninit<u64>]) {
    let range = area.as_mut_ptr_range();
    let page = rustix::param::page_size();
    // madvise wants whole pages; the ends that are none are left out.
    let skipped = range.start.cast::<u8>().align_offset(page);
    let Some(length) = std::mem::size_of_val(area).checked_sub(skipped).map(|rest| rest - rest % page) else {
        return;
    };
    let start = range.start.cast::<u8>().wrapping_add(skipped).cast::<c_void>();
    // SAFETY: the range lies inside `area`, which we hold exclusively, and MADV_HUGEPAGE changes no contents.
    // Should the allocator reuse the range within its arena later, only the page size of that memory differs.
    let _ = unsafe { rustix::mm::madvise(start, length, rustix::mm::Advice::LinuxHugepage) };
}

/// Work through the buffer block by block, again from its start when it ends, for `part_ns`. `work` returns the
/// bytes it moved. Also the CPU time it took, ns.
fn phase(buffer: &mut [u64], part_ns: u64, work: impl Fn(&mut [u64]) -> u64) -> (Span, u64) {
    let cpu_before_ns = thread_cpu_ns();
    let start_ns = raw_ns();
    let deadline_ns = start_ns.saturating_add(part_ns);
    let mut span = Span { bytes: 0, start_ns, end_ns: start_ns };
    while span.end_ns < deadline_ns && !buffer.is_empty() {
        for block in buffer.chunks_mut(BLOCK_WORDS) {
            span.bytes += work(block);
            span.end_ns = raw_ns();
            if span.end_ns >= deadline_ns {
                break;
            }
        }
    }
    (span, thread_cpu_ns().saturating_sub(cpu_before_ns))
}

/// The sum of all words, in lanes that do not wait for each other, so that the loop becomes vector additions
/// and is bound by the loads.
pub(super) fn sum(block: &[u64]) -> u64 {
    let mut lanes = [0_u64; 16];
    let (chunks, rest) = block.as_chunks::<16>();
    for chunk in chunks {
        for (lane, word) in lanes.iter_mut().zip(chunk) {
            *lane = lane.wrapping_add(*word);
        }
    }
    rest.iter().chain(&lanes).fold(0, |sum, word| sum.wrapping_add(*word))
}

/// `a[i] = b[i] + c[i]` over the three thirds of the block; bytes moved, as STREAM counts them.
pub(super) fn add(block: &mut [u64]) -> u64 {
    let third = block.len() / 3;
    let (a, rest) = block.split_at_mut(third);
    let (b, c) = rest.split_at(third);
    for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
        *a = b.wrapping_add(*c);
    }
    3 * WORD_BYTES * third as u64
}
