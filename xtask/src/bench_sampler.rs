//! What `zenkai record` costs beside the recorders that everybody has: all at once, one sample a second.

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::Context as _;

/// A recorder under way.
struct Running {
    name: &'static str,
    child: Child,
    before: Option<Cost>,
}

/// What a process has used so far.
#[derive(Clone, Copy)]
struct Cost {
    cpu_ns: u64,
    resident_kib: u64,
}

/// Runs all of them for `seconds` and prints CPU seconds per 1 000 samples. The start of each is left out.
pub(crate) fn sampler(binary: &Path, seconds: u64) -> anyhow::Result<()> {
    println!("\nRecorders side by side, {seconds} samples, one a second:");
    let dir = tempfile::tempdir()?;
    let file = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
    // Longer than is measured: they are ended.
    let count = (seconds + 60).to_string();
    let time = format!("{count}s");
    let (ours, theirs) = (file("zenkai"), file("sadc"));
    let commands: [(&'static str, &str, Vec<&str>); 4] = [
        ("zenkai record", &binary.to_string_lossy(), vec!["record", "--for", &time, "-o", &ours]),
        ("vmstat 1", "vmstat", vec!["1", &count]),
        ("iostat -x 1", "iostat", vec!["-x", "1", &count]),
        ("sadc -S XALL 1", "/usr/lib/sysstat/sadc", vec!["-S", "XALL", "1", &count, &theirs]),
    ];
    let mut running = Vec::new();
    for (name, program, args) in commands {
        match Command::new(program).args(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn() {
            Ok(child) => running.push(Running { name, child, before: None }),
            Err(error) => println!("  {name:<20} not measured: {error} (apt-get install sysstat procps)"),
        }
    }
    std::thread::sleep(Duration::from_millis(2_500));
    for each in &mut running {
        each.before = cost(each.child.id()).ok();
    }
    std::thread::sleep(Duration::from_secs(seconds));
    let after: Vec<anyhow::Result<Cost>> = running.iter().map(|each| cost(each.child.id())).collect();
    let mut base = None;
    for (each, after) in running.iter_mut().zip(after) {
        // It may have ended by itself; then its cost says so.
        let _ = each.child.kill();
        each.child.wait()?;
        match (each.before, after) {
            (Some(before), Ok(after)) => row(each.name, before, after, seconds, &mut base),
            _ => println!("  {:<20} not measured: it ended early", each.name),
        }
    }
    let size = std::fs::metadata(&ours).map_or(0, |file| file.len());
    println!("  zenkai's file grows by {:.2} MB an hour", mega(size) * 3600.0 / whole(seconds + 2));
    Ok(())
}

fn row(name: &str, before: Cost, after: Cost, seconds: u64, base: &mut Option<f64>) {
    let cpu_s = mega(after.cpu_ns.saturating_sub(before.cpu_ns)) / 1e3;
    let per_thousand = cpu_s * 1000.0 / whole(seconds);
    let base = *base.get_or_insert(per_thousand);
    let growth = after.resident_kib.saturating_sub(before.resident_kib);
    println!(
        "  {name:<20} {per_thousand:7.3} CPU s per 1 000 samples, {:5.2} times ours; resident {:.1} MB, grew by {growth} KiB",
        per_thousand / base,
        whole(after.resident_kib) * 1024.0 / 1e6,
    );
}

/// CPU time of all threads (`/proc/PID/task/*/schedstat`, nanoseconds) and resident memory.
fn cost(pid: u32) -> anyhow::Result<Cost> {
    let mut cpu_ns = 0;
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        let first = text.split_whitespace().next().context("schedstat is empty")?;
        cpu_ns += first.parse::<u64>()?;
    }
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("it has ended")?;
    let resident_kib = line.trim().trim_end_matches(" kB").parse()?;
    Ok(Cost { cpu_ns, resident_kib })
}

fn mega(number: u64) -> f64 {
    whole(number) / 1e6
}

#[expect(clippy::cast_precision_loss, reason = "figures for reading")]
fn whole(number: u64) -> f64 {
    number as f64
}
