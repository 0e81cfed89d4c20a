//! Grows a capture to more CPUs and disks by repeating what it says of CPU 0 and of one disk.

/// A capture text with `size` CPUs and as many disks. What is said of `cpu0`, `policy0` and `vda` is said again of
/// each new one.
pub(crate) fn grown(text: &str, size: u32) -> String {
    let mut out = String::with_capacity(text.len() * size as usize / 2);
    let last = size - 1;
    for record in records(text) {
        let (head, body) = record;
        if is_cpu_list(head) {
            let name = head.split(" = ").next().unwrap_or(head);
            out.push_str(&format!("{name} = 0-{last}\n"));
            continue;
        }
        if is_cpu_detail(head, 1) {
            continue;
        }
        out.push_str(head);
        out.push('\n');
        for line in &body {
            match *line {
                "-d cpu0" => (0..size).for_each(|cpu| out.push_str(&format!("-d cpu{cpu}\n"))),
                "-d policy0" => (0..size).for_each(|cpu| out.push_str(&format!("-d policy{cpu}\n"))),
                "-l vda" => {
                    out.push_str("-l vda\n");
                    (1..size).for_each(|disk| out.push_str(&format!("-l vdz{disk}\n")));
                }
                "-d cpu1" | "-d policy1" => {}
                line => {
                    out.push_str(line);
                    out.push('\n');
                }
            }
        }
        for copy in 1..size {
            let Some(change) = copy_of(head, copy) else { break };
            out.push_str(&change(head));
            out.push('\n');
            for line in &body {
                out.push_str(&change(line));
                out.push('\n');
            }
        }
    }
    out
}

type Change = Box<dyn Fn(&str) -> String>;

/// How a record of CPU 0 or of the first disk is rewritten for copy number `copy`; `None` for any other record.
fn copy_of(head: &str, copy: u32) -> Option<Change> {
    if is_cpu_detail(head, 0) {
        return Some(Box::new(move |line| {
            line.replace("/cpu0/", &format!("/cpu{copy}/"))
                .replace("/policy0/", &format!("/policy{copy}/"))
                .replace("affected_cpus = 0", &format!("affected_cpus = {copy}"))
                .replace("msr 0 ", &format!("msr {copy} "))
        }));
    }
    if head.contains("/block/vda") {
        return Some(Box::new(move |line| line.replace("vda", &format!("vdz{copy}"))));
    }
    None
}

fn is_cpu_detail(head: &str, cpu: u32) -> bool {
    head.contains(&format!("/cpu{cpu}/"))
        || head.contains(&format!("/policy{cpu}/"))
        || head.contains(&format!("msr {cpu} "))
}

fn is_cpu_list(head: &str) -> bool {
    ["online", "present", "possible"]
        .iter()
        .any(|name| head.starts_with(&format!("read /sys/devices/system/cpu/{name} = ")))
}

/// Each record's first line with the lines that belong to it.
fn records(text: &str) -> Vec<(&str, Vec<&str>)> {
    let mut records: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        match records.last_mut() {
            Some((_, body)) if line.starts_with(['|', '~', ':', '#', '=', '-']) => body.push(line),
            _ => records.push((line, Vec::new())),
        }
    }
    records
}
