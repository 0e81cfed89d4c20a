//! Grows a capture to more CPUs and disks by saying of each new one what it says of the first.

/// The first disk of the capture, and the PCI function it hangs on.
const DISK: &str = "vda";
const FUNCTION: &str = "0000:00:01.0";

/// One line of the capture with the lines that belong to it.
struct Record<'t> {
    head: &'t str,
    body: Vec<&'t str>,
}

/// As [`grown`], in the order in which zenkai writes captures.
pub(crate) fn grown_in_order(text: &str, size: u32) -> anyhow::Result<String> {
    Ok(zenkai_host::Capture::parse(&grown(text, size))?.to_text())
}

/// A capture of a machine with two CPUs and disks `vda` and `vdb`, grown to `size` CPUs and disks, each disk on a PCI
/// function of its own.
fn grown(text: &str, size: u32) -> String {
    let mut out = String::with_capacity(text.len() * (2 + size as usize / 8));
    for record in records(text) {
        // It grows, so what it says of its length is no longer true: the first version says nothing of it.
        if is_of_cpu(record.head, 1) || record.head.starts_with("end ") {
            continue;
        }
        push(&mut out, &grown_head(record.head, size), &grown_body(&record, size));
        if is_of_cpu(record.head, 0) {
            for cpu in 1..size {
                copied(&mut out, &record, |line| of_cpu(line, cpu));
            }
        } else if record.head.contains(&format!("/{DISK}")) || record.head.contains(FUNCTION) {
            for disk in 2..size {
                copied(&mut out, &record, |line| of_disk(line, disk));
            }
        }
    }
    out
}

fn push(out: &mut String, head: &str, body: &[String]) {
    for line in std::iter::once(head).chain(body.iter().map(String::as_str)) {
        out.push_str(line);
        out.push('\n');
    }
}

fn copied(out: &mut String, record: &Record<'_>, change: impl Fn(&str) -> String) {
    let body: Vec<String> = record.body.iter().map(|line| change(line)).collect();
    push(out, &change(record.head), &body);
}

fn is_of_cpu(head: &str, cpu: u32) -> bool {
    [format!("/cpu{cpu}/"), format!("/policy{cpu}/"), format!("msr {cpu} ")]
        .iter()
        .any(|place| head.contains(place))
}

fn of_cpu(line: &str, cpu: u32) -> String {
    line.replace("/cpu0/", &format!("/cpu{cpu}/"))
        .replace("/policy0/", &format!("/policy{cpu}/"))
        .replace("affected_cpus = 0", &format!("affected_cpus = {cpu}"))
        .replace("msr 0 ", &format!("msr {cpu} "))
}

fn of_disk(line: &str, disk: u32) -> String {
    line.replace(DISK, &format!("vdz{disk}"))
        .replace(FUNCTION, &format!("{:04x}:{:02x}:01.0", disk / 256, disk % 256))
        .replace("/dev = 254:0", &format!("/dev = 253:{disk}"))
}

/// CPU lists of the whole machine.
fn grown_head(head: &str, size: u32) -> String {
    if head == "zenkai-capture 2" {
        return "zenkai-capture 1".to_owned();
    }
    match head.strip_suffix(" = 0-1") {
        Some(name) => format!("{name} = 0-{}", size - 1),
        None => head.to_owned(),
    }
}

fn grown_body(record: &Record<'_>, size: u32) -> Vec<String> {
    match record.head {
        "read /proc/cpuinfo" => return cpuinfo(&record.body, size),
        "read /proc/interrupts" => {
            return record.body.iter().map(|line| interrupts(line, size)).collect();
        }
        _ => {}
    }
    let mut lines = Vec::new();
    for line in &record.body {
        match *line {
            "-d cpu0" => lines.extend((0..size).map(|cpu| format!("-d cpu{cpu}"))),
            "-d policy0" => lines.extend((0..size).map(|cpu| format!("-d policy{cpu}"))),
            "-d cpu1" | "-d policy1" => {}
            line if line.starts_with("|cpu0 ") => {
                lines.extend((0..size).map(|cpu| line.replace("cpu0", &format!("cpu{cpu}"))));
            }
            line if line.starts_with("|cpu1 ") => {}
            line => {
                lines.push(line.to_owned());
                if line.strip_prefix("-l ").is_some_and(|name| [DISK, FUNCTION].contains(&name)) {
                    lines.extend((2..size).map(|disk| of_disk(line, disk)));
                }
            }
        }
    }
    lines
}

/// The block of the first CPU for each.
fn cpuinfo(body: &[&str], size: u32) -> Vec<String> {
    let first = || body.iter().take_while(|line| **line != "|");
    let numbered = |line: &str, cpu: u32| match line.split_once(':') {
        Some((key, _)) if ["|processor", "|core id", "|apicid"].contains(&key.trim()) => {
            format!("{key}: {cpu}")
        }
        _ => line.to_owned(),
    };
    (0..size).flat_map(|cpu| first().map(move |line| numbered(line, cpu)).chain(["|".to_owned()])).collect()
}

/// The second CPU's column for each further CPU.
fn interrupts(line: &str, size: u32) -> String {
    if line.trim_start_matches('|').trim_start().starts_with("CPU0") {
        let names: Vec<String> = (0..size).map(|cpu| format!("CPU{cpu}")).collect();
        return format!("|     {}", names.join("       "));
    }
    let Some((label, rest)) = line.split_once(':') else { return line.to_owned() };
    let words: Vec<&str> = rest.split_whitespace().collect();
    match words.as_slice() {
        [first, second, text @ ..] if second.parse::<u64>().is_ok() => {
            let more = format!(" {second}").repeat(size as usize - 1);
            format!("{label}: {first}{more} {}", text.join(" "))
        }
        _ => line.to_owned(),
    }
}

fn records(text: &str) -> Vec<Record<'_>> {
    let mut records: Vec<Record<'_>> = Vec::new();
    for line in text.lines() {
        match records.last_mut() {
            Some(record) if line.starts_with(['|', '~', ':', '#', '=', '-']) => record.body.push(line),
            _ => records.push(Record { head: line, body: Vec::new() }),
        }
    }
    records
}

#[cfg(test)]
mod tests {
    use crate::bench_count::{by_subsystem, machine};

    use super::*;

    fn plain() -> String {
        std::fs::read_to_string(crate::process::root().join("fixtures/hosts/plain.capture")).unwrap()
    }

    #[test]
    fn a_grown_capture_is_a_larger_machine() {
        let two = zenkai_facts::observe(&machine(&grown(&plain(), 2)).unwrap());
        let functions_at_two = two.pcie.endpoints.get().unwrap().len();
        for size in [3, 256] {
            let host = machine(&grown(&plain(), size)).unwrap();
            let facts = zenkai_facts::observe(&host);
            let size = size as usize;
            assert_eq!(facts.cpu.topology.threads.value(), Some(size));
            assert_eq!(facts.cpu.frequency.policies.get().unwrap().len(), size);
            assert_eq!(facts.idle.states.get().unwrap()[0].cpus.len(), size);
            let disks = facts.block.disks.get().unwrap();
            assert_eq!(disks.len(), size);
            assert!(disks.iter().all(|disk| disk.size_bytes.get().is_some()));
            let functions = facts.pcie.endpoints.get().unwrap().len();
            assert_eq!(functions - size, functions_at_two - 2, "each disk has its own");
            let table = facts.irq.interrupts.get().unwrap();
            let timer = table.lines.iter().find(|line| line.name == "LOC").unwrap();
            assert_eq!((table.cpus.len(), timer.cpus as usize), (size, size));
        }
    }

    /// What is asked of the machine for one more CPU and disk is the same for the third and the hundredth.
    #[test]
    fn questions_grow_by_the_same_for_each_cpu_and_disk() {
        let asked = |size| -> Vec<(&str, usize)> { by_subsystem(&machine(&grown(&plain(), size)).unwrap()) };
        let (three, four, hundred) = (asked(3), asked(4), asked(103));
        for (index, (name, first)) in three.iter().enumerate() {
            let (step, far) = (four[index].1 - first, hundred[index].1 - first);
            assert_eq!(far, step * 100, "{name}");
            assert!(step <= 64, "{name} asks {step} questions for one more CPU and disk");
        }
    }
}
