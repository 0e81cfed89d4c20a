//! Starting QEMU, and the life of one guest.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::bmc::Bmc;
use crate::error::Doing;
use crate::hash::Hash;
use crate::spec::{MachineSpec, Mode};
use crate::{Cache, Job, LabError, Tier, archive, cache, caps, ssdt};

/// The size of the disks for a job's files and for its result; they are sparse. It is part of a snapshot.
const DISK: u64 = 256 << 20;
/// Stands in an argument for the folder of the run.
const RUN: &str = "@RUN@";
const STOCK: &str = "qemu-system-x86_64";

/// What makes a guest the same guest again: all of QEMU's arguments but those for one run's files.
#[derive(Debug, Clone)]
pub(crate) struct CommandLine {
    machine: String,
    program: PathBuf,
    args: Vec<String>,
    registers: Option<PathBuf>,
    clock: bool,
    bmc_watts: Option<u16>,
}

impl CommandLine {
    /// The command line for a machine, with what a job changes in it. Fails if a tier it needs is missing.
    pub(crate) fn new(cache: &Cache, spec: &MachineSpec, job: &Job) -> Result<Self, LabError> {
        let mini = cache.tier(Tier::Mini)?;
        let full = (spec.tiers().contains(&Tier::Full)).then(|| cache.tier(Tier::Full)).transpose()?;
        let own = (spec.tiers().contains(&Tier::Qemu)).then(|| cache.tier(Tier::Qemu)).transpose()?;
        let mut args: Vec<String> = Vec::new();
        let mut add = |words: &[&str]| args.extend(words.iter().map(|&word| word.to_owned()));
        // No acceleration, whatever the host offers: a guest must behave the same everywhere.
        add(&[
            "-accel",
            "tcg,thread=multi",
            "-M",
            "q35",
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
        ]);
        // A guest without network devices of its own has no `-nic` either.
        add(&["-no-reboot", "-m", &spec.memory.to_string()]);
        // Supervisor mode access prevention is off under Xen: QEMU 7.2 faults on dom0's first return to user mode.
        let cpu = if spec.xen { format!("{},-smap", spec.cpu) } else { spec.cpu.clone() };
        let topology = if spec.topology.is_empty() { String::new() } else { format!(",{}", spec.topology) };
        add(&["-cpu", &cpu, "-smp", &format!("{}{topology}", spec.cpus)]);
        if own.is_some() {
            add(&["-L", "/usr/share/seabios", "-L", "/usr/share/qemu", "-L", "/usr/lib/ipxe/qemu"]);
        }
        let kernel = kernel(cache, &mini, &spec.features)?;
        boot_args(&mut args, spec, &job.append, &kernel, &mini, full.as_deref());
        if let Some(pstates) = spec.pstates {
            let table = ssdt::compiled(cache, spec.cpus, pstates)?;
            args.extend(["-acpitable".into(), format!("file={}", table.display())]);
        }
        if spec.mode != Mode::Mini
            && let Some(full) = &full
        {
            args.extend(disk("labroot", &full.join("root.ext4").display().to_string(), ",readonly=on"));
        }
        if spec.bmc_watts.is_some() {
            let socket = format!("socket,id=bmc,path={RUN}/bmc,reconnect=1");
            let devices = ["-chardev", &socket, "-device", "ipmi-bmc-extern,id=bmc0,chardev=bmc"];
            args.extend(devices.map(str::to_owned));
            args.extend(["-device", "isa-ipmi-kcs,bmc=bmc0"].map(str::to_owned));
        }
        args.extend(spec.qemu.iter().chain(&job.qemu).cloned());
        args.extend(disk("labin", &format!("{RUN}/in"), ",num-queues=1"));
        args.extend(disk("labout", &format!("{RUN}/out"), ",num-queues=1"));
        let program = own.map_or_else(|| STOCK.into(), |folder| folder.join("qemu-lab"));
        Ok(Self {
            machine: spec.name.clone(),
            program,
            args,
            registers: spec.register_file(),
            clock: spec.clock,
            bmc_watts: spec.bmc_watts,
        })
    }

    /// A hash of everything that must be the same for a snapshot to be restored.
    pub(crate) fn hash(&self, prepare: &str) -> Result<String, LabError> {
        let mut hash = Hash::new();
        self.args.iter().for_each(|arg| hash.add(arg.as_bytes()));
        hash.add(prepare.as_bytes());
        if let Some(path) = &self.registers {
            hash.add(&fs::read(path).with_path("read", path)?);
        }
        if self.clock {
            hash.add(b"clock");
        }
        // Another QEMU, such as an upgraded one, may not understand the state.
        let program = if self.program.is_absolute() {
            self.program.clone()
        } else {
            let dirs = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&dirs)
                .map(|dir| dir.join(&self.program))
                .find(|path| path.exists())
                .unwrap_or_default()
        };
        if let Ok(meta) = fs::metadata(&program) {
            hash.add(format!("{} {} {}", program.display(), meta.len(), meta.mtime()).as_bytes());
        }
        Ok(hash.hex())
    }
}

/// The kernel and its command line, plain or under Xen.
fn boot_args(
    args: &mut Vec<String>,
    spec: &MachineSpec,
    append: &str,
    kernel: &Path,
    mini: &Path,
    full: Option<&Path>,
) {
    let mode = match spec.mode {
        Mode::Mini => "mini",
        Mode::Tools => "tools",
        Mode::Systemd => "systemd",
    };
    let modules = spec.modules.join(",");
    // no_timer_check: on a busy host the check of the timer can fail and panic.
    let line = format!(
        "panic=-1 quiet no_timer_check random.trust_cpu=on lab.mode={mode} lab.mods={modules} {} {append}",
        spec.append
    );
    let (kernel, initrd) = (kernel.display(), mini.join("base.cpio").display().to_string());
    if let (true, Some(full)) = (spec.xen, full) {
        let xen = full.join("xen.elf").display().to_string();
        // QEMU separates the modules by commas; one inside an argument is written twice.
        let module = format!("{kernel} console=hvc0 {line}").replace(',', ",,");
        let words = "console=com1 com1=115200 dom0_mem=1024M cpufreq=xen cpuidle";
        args.extend(
            ["-kernel", &xen, "-append", words, "-initrd", &format!("{module},{initrd}")].map(str::to_owned),
        );
    } else {
        let line = format!("console=ttyS0 tsc=reliable {line}");
        args.extend(
            ["-kernel", &kernel.to_string(), "-initrd", &initrd, "-append", &line].map(str::to_owned),
        );
    }
}

/// A disk. Its bus is named, as QEMU would else take the first that has room, such as one for bridges only.
fn disk(serial: &str, file: &str, options: &str) -> [String; 4] {
    let (drive, device) = if options.contains("readonly") { (options, "") } else { ("", options) };
    [
        "-drive".into(),
        format!("if=none,id={serial},format=raw,file={file}{drive}"),
        "-device".into(),
        format!("virtio-blk-pci,bus=pcie.0,drive={serial},serial={serial}{device}"),
    ]
}

/// The kernel's image, edited if the machine needs CPU features that the emulator cannot announce.
fn kernel(cache: &Cache, mini: &Path, features: &[String]) -> Result<PathBuf, LabError> {
    let stock = mini.join("vmlinux");
    if features.is_empty() {
        return Ok(stock);
    }
    let build = mini.file_name().unwrap_or_default().display();
    cache.derived(&format!("vmlinux-{build}-{}", features.join("-")), |to| {
        let mut image = fs::read(&stock).with_path("read", &stock)?;
        caps::patch(&mut image, features)
            .map_err(|what| LabError::BadFile { path: stock.display().to_string(), what })?;
        fs::write(to, image).with_path("write", to)
    })
}

/// How a guest begins.
pub(crate) enum Begin<'a> {
    /// It boots.
    Boot,
    /// It goes on from a saved state.
    Restore(&'a Path),
}

/// Where its serial console goes.
#[derive(PartialEq, Eq)]
pub(crate) enum Console {
    /// Into a file of the run.
    File,
    /// To our own terminal.
    Terminal,
}

/// A running guest. It is ended when dropped.
pub(crate) struct Guest {
    machine: String,
    child: Child,
    started: Instant,
    // Kept while the guest runs. The BMC's socket is in the folder, so that it must end first.
    _bmc: Option<Bmc>,
    _slot: File,
    dir: TempDir,
}

impl Guest {
    /// Starts a guest, once the host has room for it. `write_input` puts something on its input disk first.
    pub(crate) fn start(
        cache: &Cache,
        line: &CommandLine,
        begin: &Begin<'_>,
        console: &Console,
        input: &Input,
    ) -> Result<Self, LabError> {
        let dir = tempfile::Builder::new()
            .prefix("zenkai-lab-")
            .tempdir()
            .doing(|| "cannot make a temporary folder".into())?;
        for name in ["in", "out"] {
            let path = dir.path().join(name);
            let file = File::create(&path).with_path("write", &path)?;
            file.set_len(DISK).with_path("write", &path)?;
        }
        input.write(&dir.path().join("in"))?;
        let bmc = line.bmc_watts.map(|watts| Bmc::start(&dir.path().join("bmc"), watts));
        let bmc = bmc.transpose().doing(|| "cannot start the BMC".into())?;
        let slot = cache.guest_slot()?;
        let started = Instant::now();
        let child = spawn(cache, line, begin, console, dir.path())?;
        Ok(Self { machine: line.machine.clone(), child, dir, started, _bmc: bmc, _slot: slot })
    }

    /// The control socket.
    pub(crate) fn control(&self) -> PathBuf {
        self.dir.path().join("qmp")
    }

    /// The time since its start.
    pub(crate) fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// Waits until the console shows a line that begins with a word; gives the rest of that line.
    pub(crate) fn wait_for(
        &mut self,
        word: &str,
        limit: Duration,
        doing: &'static str,
    ) -> Result<String, LabError> {
        loop {
            // Only whole lines count, so that what follows the word is there too.
            let text = self.console();
            let mut lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
            if let Some((_, rest)) = lines.find_map(|line| line.split_once(word)) {
                return Ok(rest.trim().to_owned());
            }
            if self.ended()? {
                return Err(self.failed("the guest ended early"));
            }
            self.check_age(limit, doing)?;
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the guest has switched itself off.
    pub(crate) fn wait_end(&mut self, limit: Option<Duration>, doing: &'static str) -> Result<(), LabError> {
        let mut looked = Instant::now();
        while !self.ended()? {
            if let Some(limit) = limit {
                self.check_age(limit, doing)?;
            }
            if looked.elapsed() >= Duration::from_secs(1) {
                looked = Instant::now();
                if let Some(line) = standstill(&self.console()) {
                    return Err(LabError::StoodStill { machine: self.machine.clone(), line });
                }
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    fn ended(&mut self) -> Result<bool, LabError> {
        Ok(self.child.try_wait().doing(|| "cannot wait for QEMU".into())?.is_some())
    }

    fn check_age(&self, limit: Duration, doing: &'static str) -> Result<(), LabError> {
        if self.started.elapsed() <= limit {
            return Ok(());
        }
        let console = cache::tail(&self.console(), 3000).to_owned();
        Err(LabError::TimedOut { machine: self.machine.clone(), doing, limit, console })
    }

    /// An error with the guest's console and QEMU's own messages.
    pub(crate) fn failed(&self, what: &str) -> LabError {
        let said = fs::read(self.dir.path().join("qemu.log")).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        // Said at each start for each feature of a CPU model that the emulator lacks.
        let said: Vec<&str> = said.lines().filter(|line| !line.contains("TCG doesn't support")).collect();
        let what = if said.is_empty() { what.into() } else { format!("{what} (QEMU: {})", said.join("; ")) };
        let console = cache::tail(&self.console(), 3000).to_owned();
        LabError::GuestFailed { machine: self.machine.clone(), what, console }
    }

    /// What the guest wrote to its console up to now.
    pub(crate) fn console(&self) -> String {
        let bytes = fs::read(self.dir.path().join("console")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\r', "")
    }

    /// The tar on the output disk.
    pub(crate) fn result(&self) -> Result<std::collections::BTreeMap<String, Vec<u8>>, LabError> {
        use std::io::Read;
        let path = self.dir.path().join("out");
        let file = File::open(&path).with_path("read", &path)?;
        // The agent writes from the start without gaps: what the sparse file occupies holds the tar.
        let occupied = file.metadata().with_path("read", &path)?.blocks() * 512;
        let mut tar = Vec::new();
        file.take(occupied).read_to_end(&mut tar).with_path("read", &path)?;
        Ok(archive::read(&tar))
    }
}

/// What a kernel's watchdog says of a CPU that has run one task for so long that it will not do anything else any more
/// (`watchdog_timer_fn` in kernel/watchdog.c). A CPU that the host lets wait is behind by less.
fn standstill(console: &str) -> Option<String> {
    const LONG_S: u32 = 50;
    let told = |line: &&str| {
        let (_, rest) = line.split_once("BUG: soft lockup - CPU#")?;
        let (_, rest) = rest.split_once("stuck for ")?;
        rest.split_once('s')?.0.parse::<u32>().ok()
    };
    console.lines().find(|line| told(line).is_some_and(|stuck_s| stuck_s >= LONG_S)).map(str::to_owned)
}

impl Drop for Guest {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn spawn(
    cache: &Cache,
    line: &CommandLine,
    begin: &Begin<'_>,
    console: &Console,
    dir: &Path,
) -> Result<Child, LabError> {
    let run = dir.display().to_string();
    // If this process is killed, the guest must not go on alone: the kernel ends it with the thread that started it.
    let guard = Path::new("/usr/bin/setpriv");
    let mut command = if guard.exists() {
        let mut command = Command::new(guard);
        command.args(["--pdeathsig", "KILL", "--"]).arg(&line.program);
        command
    } else {
        Command::new(&line.program)
    };
    command.args(line.args.iter().map(|arg| arg.replace(RUN, &run)));
    command.arg("-qmp").arg(format!("unix:{run}/qmp,server=on,wait=off"));
    match console {
        Console::File => command.arg("-serial").arg(format!("file:{run}/console")),
        Console::Terminal => {
            command.args(["-chardev", "stdio,id=terminal,signal=off", "-serial", "chardev:terminal"])
        }
    };
    if let Begin::Restore(state) = begin {
        command.arg("-incoming").arg(format!("exec:cat '{}'", state.display()));
    }
    match &line.registers {
        Some(path) => command.env("QEMU_LAB_MSR", path),
        None => command.env_remove("QEMU_LAB_MSR"),
    };
    command.env_remove("QEMU_LAB_CLOCK");
    if line.clock {
        command.env("QEMU_LAB_CLOCK", "1");
    }
    let log = File::create(dir.join("qemu.log")).doing(|| "cannot write QEMU's log".into())?;
    command.stderr(log);
    if *console == Console::File {
        command.stdin(Stdio::null()).stdout(Stdio::null());
    }
    command.spawn().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => cache.missing(Tier::Mini, &format!("{STOCK} is not installed")),
        _ => LabError::Io { what: format!("cannot start {}", line.program.display()), source: error },
    })
}

/// What is put on a guest's input disk: a word for the agent, and a tar of files.
#[derive(Default)]
pub(crate) struct Input {
    word: &'static str,
    tar: Vec<u8>,
}

impl Input {
    /// Tells the agent to wait.
    pub(crate) fn wait() -> Self {
        Self { word: "WAIT", tar: Vec::new() }
    }

    /// Files for the agent, of which it runs `job`. The word is GO to hand back the result, PRE to go on waiting.
    pub(crate) fn files<'a>(
        word: &'static str,
        files: impl IntoIterator<Item = (&'a str, Vec<u8>)>,
    ) -> Result<Self, LabError> {
        let mut tar = Vec::new();
        for (name, data) in files {
            archive::append(&mut tar, name, true, &data).doing(|| format!("cannot pack {name}"))?;
        }
        archive::finish(&mut tar).doing(|| "cannot pack the job".into())?;
        Ok(Self { word, tar })
    }

    fn write(&self, disk: &Path) -> Result<(), LabError> {
        let bytes = self.tar.len() as u64 + 512;
        if bytes > DISK {
            let source = std::io::Error::other(format!("{bytes} bytes do not fit on the disk of {DISK}"));
            return Err(LabError::Io { what: "cannot hand over the job's files".into(), source });
        }
        let mut file = File::options().write(true).open(disk).with_path("write", disk)?;
        let mut write = || {
            file.seek(SeekFrom::Start(512))?;
            file.write_all(&self.tar)?;
            // Last, as it is what the agent waits for.
            let mut head = format!("{} {}\n", self.word, bytes.div_ceil(65536)).into_bytes();
            head.resize(512, 0);
            file.seek(SeekFrom::Start(0))?;
            file.write_all(&head)
        };
        write().with_path("write", disk)
    }
}

#[cfg(test)]
mod tests {
    use super::standstill;

    #[test]
    fn a_standstill_is_told_from_a_host_that_lets_wait() {
        let told = |stuck: &str| {
            format!("up\n[  32.5] watchdog: BUG: soft lockup - CPU#0 stuck for {stuck}! [job:148]\nx")
        };
        assert_eq!(standstill(&told("26s")), None);
        assert!(standstill(&told("52s")).unwrap().ends_with("stuck for 52s! [job:148]"));
        assert_eq!(standstill("BUG: soft lockup - CPU#0 stuck for ever"), None);
    }
}
