//! The adapters with the real programs. `cargo xtask test` installs them; elsewhere a test that misses one says so.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use zenkai_host::workload::{Job, run};

use super::*;

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(ToOwned::to_owned).collect()
}

fn run_it(command: &str) -> io::Result<(Prepared, Ran)> {
    let prepared = prepare(&words(command));
    let job = Job {
        argv: prepared.argv.clone(),
        environment: Vec::new(),
        timeout: Some(Duration::from_secs(60)),
        cgroup: false,
        cpu_max: None,
        output_limit: 1 << 20,
        terminal: false,
    };
    run(&job, None, &mut |_| ()).map(|ran| (prepared, ran))
}

/// What a command measures; `None` when its program is not installed.
fn measured(command: &str) -> Option<BTreeMap<String, Measure>> {
    match run_it(command) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            eprintln!("SKIPPED: {error}");
            None
        }
        result => {
            let (prepared, ran) = result.unwrap();
            let measures = prepared.measures(&ran).unwrap();
            for (name, measure) in &measures {
                assert!(prepared.describe(name).is_some(), "nothing is known of {name}");
                assert!(measure.value.is_finite() && measure.value >= 0.0, "{name}: {measure:?}");
            }
            assert!(
                measures[prepared.primary()].value > 0.0 && measures[prepared.primary()].better.is_some()
            );
            Some(measures)
        }
    }
}

fn assert_measured(measures: &BTreeMap<String, Measure>, names: &[&str]) {
    for name in names {
        assert!(measures.get(*name).is_some_and(|measure| measure.value > 0.0), "{name} in {measures:#?}");
    }
}

/// A server that ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Starts a server and waits until it listens at `port`; `None` when it is not installed.
#[expect(clippy::disallowed_methods, reason = "the other side of the program under test")]
fn server(command: &str, port: u16, dir: &std::path::Path) -> Option<Server> {
    let argv = words(command);
    let mut command = Command::new(&argv[0]);
    command
        .args(&argv[1..])
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let child = match command.spawn() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            eprintln!("SKIPPED: {} is not installed", argv[0]);
            return None;
        }
        child => Server(child.unwrap()),
    };
    let start = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(start.elapsed() < Duration::from_secs(20), "{argv:?} does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    Some(child)
}

#[test]
fn any_command_gives_time_and_memory() {
    let all = measured("sh -c :").unwrap();
    assert_measured(&all, &["time"]);
    let (unit, better) = prepare(&words("sh")).describe("user").unwrap();
    assert_eq!((unit, better), ("s", Some(Better::Lower)));
    assert_eq!(prepare(&words("sh")).describe("iops"), None);
}

#[test]
fn a_run_that_failed_says_why() {
    let why = |command: &str| {
        let (prepared, ran) = run_it(command).unwrap();
        prepared.measures(&ran).unwrap_err()
    };
    assert_eq!(why("false"), "false ended with exit code 1");
    assert!(why("ls /no/such/file").starts_with("ls ended with exit code 2: ls: "));
    // Programs of the user's own that are called like a known one.
    let dir = tempfile::tempdir().unwrap();
    for (name, said) in
        [("fio", "no JSON"), ("iperf3", "JSON"), ("sysbench", "no \"total number"), ("wrk", "no requests")]
    {
        let path = dir.path().join(name);
        std::os::unix::fs::symlink("/bin/true", &path).unwrap();
        let error = why(path.to_str().unwrap());
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn what_is_missing_has_a_package() {
    let error = run_it("/nowhere/fio --name=x").unwrap_err();
    let text = prepare(&words("/nowhere/fio")).explain(&error);
    assert_eq!(text, "/nowhere/fio: no such file (Debian, Ubuntu: package fio; Red Hat, Fedora: fio)");
}

#[test]
fn only_what_is_missing_is_added() {
    let argv = |command: &str| prepare(&words(command)).argv.join(" ");
    assert_eq!(argv("/usr/bin/fio job.fio"), "/usr/bin/fio --output-format=json job.fio");
    assert_eq!(argv("fio --output-format=json+ job.fio"), "fio --output-format=json+ job.fio");
    assert_eq!(argv("iperf3 -c host"), "iperf3 -J -c host");
    assert_eq!(argv("iperf3 -c host --json"), "iperf3 -c host --json");
    assert_eq!(argv("wrk -d1 http://x/"), "wrk --latency -d1 http://x/");
    assert_eq!(argv("stress-ng --cpu 1 -t 1"), "stress-ng --metrics-brief --cpu 1 -t 1");
    assert_eq!(argv("sysbench cpu run"), "sysbench cpu run");
    assert_eq!(argv("echo fio"), "echo fio");
    assert_eq!(argv("os-index --copies 1"), "/proc/self/exe os-index --json --copies 1");
    assert_eq!(argv("./os-index --copies 1"), "./os-index --copies 1");
    assert_eq!(argv(""), "");
}

#[test]
fn os_index_is_described() {
    let prepared = prepare(&words("os-index"));
    for (name, unit, _) in crate::os_index::tests() {
        assert_eq!(prepared.describe(&format!("2x/{name}")), Some((unit, Some(Better::Higher))));
    }
}

#[test]
fn fio_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().to_str().unwrap();
    let job = format!("--directory={dir} --size=1M --bs=4k --ioengine=psync");
    let Some(one) = measured(&format!("fio --name=mixed --rw=randrw {job}")) else { return };
    assert_measured(
        &one,
        &["iops", "bandwidth", "read/iops", "write/bandwidth", "read/clat_p99.9", "write/clat_p50"],
    );
    assert!((one["bandwidth"].value / one["iops"].value - 4096.0).abs() < 1.0);
    assert!(one["read/clat_mean"].value < 1.0 && one["read/clat_mean"].unit == "s");
    let two =
        measured(&format!("fio --name=a --rw=read {job} --name=b --rw=write --numjobs=2 {job}")).unwrap();
    assert_measured(&two, &["iops", "a/read/iops", "b/write/clat_p99", "b.2/write/iops"]);
    let parts: f64 =
        ["a/read/iops", "b/write/iops", "b.2/write/iops"].iter().map(|name| two[*name].value).sum();
    assert!((two["iops"].value / parts - 1.0).abs() < 1e-9);
}

#[test]
fn sysbench_is_read() {
    let Some(cpu) = measured("sysbench cpu --events=20 --time=0 run") else { return };
    assert_measured(&cpu, &["events", "latency_avg", "latency_p95", "latency_max"]);
    let memory = measured("sysbench memory --memory-total-size=64M --memory-block-size=1K run").unwrap();
    assert_measured(&memory, &["events", "transfer", "latency_avg"]);
    assert!((memory["transfer"].value / memory["events"].value - 1024.0).abs() < 1.0);
    assert!(measured("sysbench threads --events=50 --time=0 run").is_some());
}

#[test]
fn sysbench_fileio_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().to_str().unwrap();
    // It writes to the directory it is in.
    let sysbench = |what: &str| {
        let script = format!("cd {dir} && exec sysbench fileio --file-total-size=1M --file-num=2 {what}");
        let argv = ["sh".to_owned(), "-c".to_owned(), script];
        let job = Job {
            argv: argv.to_vec(),
            environment: Vec::new(),
            timeout: Some(Duration::from_secs(60)),
            cgroup: false,
            cpu_max: None,
            output_limit: 1 << 20,
            terminal: false,
        };
        run(&job, None, &mut |_| ()).unwrap()
    };
    if sysbench("prepare").ended != Ended::Exited(0) {
        eprintln!("SKIPPED: sysbench is not installed");
        return;
    }
    let ran = sysbench("--file-test-mode=rndrw --events=200 --time=0 run");
    let measures = prepare(&words("sysbench")).measures(&ran).unwrap();
    assert_measured(&measures, &["events", "reads", "writes", "read_bandwidth", "write_bandwidth"]);
}

#[test]
fn stress_ng_is_read() {
    let Some(all) = measured("stress-ng --cpu 1 --cpu-ops 20 --pipe 1 --pipe-ops 2000") else { return };
    assert_measured(&all, &["bogo_ops", "cpu/bogo_ops", "pipe/bogo_ops", "pipe/bogo_ops_per_cpu_time"]);
    let mean = (all["cpu/bogo_ops"].value * all["pipe/bogo_ops"].value).sqrt();
    assert!((all["bogo_ops"].value / mean - 1.0).abs() < 1e-9);
}

/// The server serves one client after the other, and refuses who comes too early.
fn iperf3(arguments: &str) -> BTreeMap<String, Measure> {
    let start = Instant::now();
    loop {
        let (prepared, ran) = run_it(&format!("iperf3 {arguments}")).unwrap();
        match prepared.measures(&ran) {
            Ok(measures) => return measures,
            Err(why) => assert!(start.elapsed() < Duration::from_secs(20), "{why}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn iperf3_is_read() {
    let port = free_port();
    let dir = tempfile::tempdir().unwrap();
    let Some(server) = server(&format!("iperf3 -s -B 127.0.0.1 -p {port}"), port, dir.path()) else { return };
    let tcp = iperf3(&format!("-c 127.0.0.1 -p {port} -n 1M"));
    assert_measured(&tcp, &["time", "received", "sent"]);
    assert_eq!((tcp["received"].unit.as_str(), tcp["received"].better), ("B/s", Some(Better::Higher)));
    let udp = iperf3(&format!("-c 127.0.0.1 -p {port} -u -b 10M -n 100K"));
    assert_measured(&udp, &["received"]);
    assert!(udp.contains_key("lost") && udp["jitter"].unit == "s");
    drop(server);
    // Some versions exit with 0 here.
    let (prepared, ran) = run_it(&format!("iperf3 -c 127.0.0.1 -p {port} -n 1M")).unwrap();
    assert!(prepared.measures(&ran).unwrap_err().contains("iperf3"));
}

#[test]
fn wrk_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let port = free_port();
    let Some(_server) = server(&format!("python3 -m http.server --bind 127.0.0.1 {port}"), port, dir.path())
    else {
        return;
    };
    let Some(all) = measured(&format!("wrk -t1 -c2 -d1 http://127.0.0.1:{port}/")) else { return };
    assert_measured(
        &all,
        &["requests", "transfer", "latency_avg", "latency_p50", "latency_p99", "latency_max"],
    );
    assert!(all["latency_p50"].value < 1.0 && all["latency_p50"].value <= all["latency_p99"].value);
    let (prepared, ran) = run_it(&format!("wrk -t1 -c2 -d1 http://127.0.0.1:{port}/nothing")).unwrap();
    assert!(prepared.measures(&ran).unwrap_err().contains("were errors"));
}

#[test]
fn memcaslap_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let port = free_port();
    let Some(_server) =
        server(&format!("memcached -u nobody -l 127.0.0.1 -p {port} -m 16"), port, dir.path())
    else {
        return;
    };
    let Some(all) = measured(&format!("memcaslap -s 127.0.0.1:{port} -t 1s -T 1 -c 1")) else { return };
    assert_measured(&all, &["operations", "transfer"]);
    assert!(all.contains_key("get_misses"));
}
