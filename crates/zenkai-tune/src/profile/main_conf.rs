//! `/etc/tuned/tuned-main.conf`: the settings of tuned itself.

use zenkai_host::{Host, NotRecorded};

use super::{
    Note, Origin, ProfileError,
    functions::python_int,
    ini::{self, Dialect, Entry},
};

/// Where it is.
pub const MAIN_CONF: &str = "/etc/tuned/tuned-main.conf";

/// Where profiles are when nothing is configured: the places up to tuned 2.22 and those since, the administrator's
/// over the distribution's.
const DIRECTORIES: [&str; 4] =
    ["/usr/lib/tuned", "/usr/lib/tuned/profiles", "/etc/tuned", "/etc/tuned/profiles"];

/// Whether stopping undoes what was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rollback {
    /// It does.
    Auto,
    /// What was applied stays.
    NotOnExit,
}

/// The settings, each with tuned's default where nothing is written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "the switches of one file, each with its own meaning")]
pub struct MainConf {
    /// Whether a daemon is wanted; otherwise profiles are applied once.
    pub daemon: bool,
    /// Whether plugins may follow the load.
    pub dynamic_tuning: bool,
    /// Seconds between two looks at whether to stop.
    pub sleep_interval_s: i64,
    /// Seconds between two looks at the load.
    pub update_interval_s: i64,
    /// Whether a profile is recommended by the machine's kind; otherwise it is always `balanced`.
    pub recommend_command: bool,
    /// Whether the system's own sysctl files win over a profile.
    pub reapply_sysctl: bool,
    /// Globs of sysctl files that do not.
    pub reapply_sysctl_exclude: Vec<String>,
    /// Priority of units that have none.
    pub default_instance_priority: i64,
    /// Bytes of the buffer for device events.
    pub udev_buffer_size_bytes: u64,
    /// How many old log files are kept.
    pub log_file_count: i64,
    /// Bytes after which a log file is closed.
    pub log_file_max_size_bytes: u64,
    /// Used in place of what uname says.
    pub uname_string: Option<String>,
    /// Used in place of `/proc/cpuinfo`.
    pub cpuinfo_string: Option<String>,
    /// Whether the daemon answers on D-Bus.
    pub enable_dbus: bool,
    /// Whether the daemon answers on a socket.
    pub enable_unix_socket: bool,
    /// That socket.
    pub unix_socket_path: String,
    /// Sockets that are told of changes.
    pub unix_socket_signal_paths: Vec<String>,
    /// User and group of the socket; -1 leaves them.
    pub unix_socket_ownership: (i64, i64),
    /// Permission bits of the socket.
    pub unix_socket_permissions: u32,
    /// Length of the socket's queue.
    pub connections_backlog: i64,
    /// What stopping does.
    pub rollback: Rollback,
    /// Directories with profiles, the later ones stronger.
    pub profile_directories: Vec<String>,
    /// Seconds to wait at start until all devices have appeared.
    pub startup_udev_settle_wait_s: i64,
    /// What was passed over.
    pub notes: Vec<Note>,
}

impl Default for MainConf {
    fn default() -> Self {
        Self {
            daemon: true,
            dynamic_tuning: true,
            sleep_interval_s: 1,
            update_interval_s: 10,
            recommend_command: true,
            reapply_sysctl: true,
            reapply_sysctl_exclude: Vec::new(),
            default_instance_priority: 0,
            udev_buffer_size_bytes: 1 << 20,
            log_file_count: 2,
            log_file_max_size_bytes: 1 << 20,
            uname_string: None,
            cpuinfo_string: None,
            enable_dbus: true,
            enable_unix_socket: false,
            unix_socket_path: "/run/tuned/tuned.sock".to_owned(),
            unix_socket_signal_paths: Vec::new(),
            unix_socket_ownership: (-1, -1),
            unix_socket_permissions: 0o600,
            connections_backlog: 1024,
            rollback: Rollback::Auto,
            profile_directories: DIRECTORIES.map(str::to_owned).to_vec(),
            startup_udev_settle_wait_s: 0,
            notes: Vec::new(),
        }
    }
}

impl MainConf {
    /// Reads the file. Without it everything has its default; a file that cannot be parsed is an error.
    pub fn read(host: &dyn Host) -> Result<Self, ProfileError> {
        let content = match host.read(MAIN_CONF) {
            Ok(content) => content,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound || NotRecorded::is(&error) => {
                return Ok(Self::default());
            }
            Err(error) => {
                let file = MAIN_CONF.to_owned();
                return Err(ProfileError::Unreadable { file, error: error.to_string() });
            }
        };
        Self::parse(&content)
    }

    /// Parses the file's content. Unknown keys and values that make no sense are noted and have their default.
    pub fn parse(content: &[u8]) -> Result<Self, ProfileError> {
        let ini = ini::parse(MAIN_CONF, content, Dialect::Headerless)?;
        let mut conf = Self::default();
        for entry in ini.sections.first().map(|section| section.entries.as_slice()).unwrap_or_default() {
            if let Some(why) = conf.set(entry) {
                let origin = Origin::Line { file: MAIN_CONF.to_owned(), line: entry.line };
                conf.notes.push(Note { origin, text: format!("{why}; passed over") });
            }
        }
        Ok(conf)
    }

    /// Takes one setting, or says why not.
    fn set(&mut self, entry: &Entry) -> Option<String> {
        let text = entry.value.as_deref().unwrap_or_default();
        let taken = match entry.key.as_str() {
            "daemon" => put(&mut self.daemon, flag(text)),
            "dynamic_tuning" => put(&mut self.dynamic_tuning, flag(text)),
            "sleep_interval" => put(&mut self.sleep_interval_s, python_int(text)),
            "update_interval" => put(&mut self.update_interval_s, python_int(text)),
            "recommend_command" => put(&mut self.recommend_command, flag(text)),
            "reapply_sysctl" => put(&mut self.reapply_sysctl, flag(text)),
            "reapply_sysctl_exclude" => put(&mut self.reapply_sysctl_exclude, Some(list(text))),
            "default_instance_priority" => put(&mut self.default_instance_priority, python_int(text)),
            "udev_buffer_size" => put(&mut self.udev_buffer_size_bytes, size(text)),
            "log_file_count" => put(&mut self.log_file_count, python_int(text)),
            "log_file_max_size" => put(&mut self.log_file_max_size_bytes, size(text)),
            "uname_string" => put(&mut self.uname_string, Some(some(text))),
            "cpuinfo_string" => put(&mut self.cpuinfo_string, Some(some(text))),
            "enable_dbus" => put(&mut self.enable_dbus, flag(text)),
            "enable_unix_socket" => put(&mut self.enable_unix_socket, flag(text)),
            "unix_socket_path" => put(&mut self.unix_socket_path, some(text)),
            "unix_socket_signal_paths" => put(&mut self.unix_socket_signal_paths, Some(list(text))),
            "unix_socket_ownership" => put(&mut self.unix_socket_ownership, owner(text)),
            "unix_socket_permissions" | "unix_socket_permisions" => {
                put(&mut self.unix_socket_permissions, octal(text))
            }
            "connections_backlog" => put(&mut self.connections_backlog, python_int(text)),
            "rollback" => put(&mut self.rollback, rollback(text)),
            "profile_dirs" => put(&mut self.profile_directories, directories(text)),
            "startup_udev_settle_wait" => put(&mut self.startup_udev_settle_wait_s, python_int(text)),
            key => return Some(format!("`{}` is no setting", key.escape_debug())),
        };
        (!taken).then(|| format!("`{}` is no value for {}", text.escape_debug(), entry.key))
    }
}

fn put<T>(place: &mut T, value: Option<T>) -> bool {
    let taken = value.is_some();
    if let Some(value) = value {
        *place = value;
    }
    taken
}

/// A switch as `configparser.getboolean` takes it.
fn flag(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "yes" | "true" | "on" => Some(true),
        "0" | "no" | "false" | "off" => Some(false),
        _ => None,
    }
}

/// Bytes, with `kB`, `MB` or `GB` of 1 024.
fn size(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_uppercase();
    let shifts = [("KB", 10), ("MB", 20), ("GB", 30), ("", 0)];
    let (number, shift) = shifts.iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift)))?;
    u64::try_from(python_int(number)?).ok()?.checked_mul(1 << shift)
}

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn list(text: &str) -> Vec<String> {
    text.split([',', ';']).map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// Only absolute ones: what is relative depends on where the program was started.
fn directories(text: &str) -> Option<Vec<String>> {
    let all: Vec<String> =
        list(text).iter().map(|path| super::load::absolute("", path)).filter(|path| path.len() > 1).collect();
    let absolute = list(text).iter().all(|path| path.starts_with('/'));
    (absolute && !all.is_empty()).then_some(all)
}

/// User and group by number; names would need the user database.
fn owner(text: &str) -> Option<(i64, i64)> {
    let mut numbers = text.split_whitespace().map(python_int);
    Some((numbers.next()??, numbers.next()??))
}

/// Octal with or without Python's `0o`.
fn octal(text: &str) -> Option<u32> {
    let digits = text.trim();
    let digits = digits.strip_prefix("0o").unwrap_or(digits);
    u32::from_str_radix(digits, 8).ok().filter(|mode| *mode <= 0o7777)
}

fn rollback(text: &str) -> Option<Rollback> {
    match text {
        "auto" => Some(Rollback::Auto),
        "not_on_exit" => Some(Rollback::NotOnExit),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use zenkai_host::FakeHost;

    use super::*;

    #[test]
    fn nothing_written_is_all_defaults() {
        assert_eq!(MainConf::read(&FakeHost::new(&[])).unwrap(), MainConf::default());
        assert_eq!(MainConf::parse(b"# only a comment\n").unwrap(), MainConf::default());
    }

    #[test]
    fn settings() {
        let conf = MainConf::parse(
            b"daemon = 0\ndynamic_tuning=off # c\nlog_file_max_size = 2MB\nudev_buffer_size=4096\n\
              unix_socket_permissions = 0o660\nunix_socket_ownership = 0 -1\nrollback=not_on_exit\n\
              profile_dirs=/a/ , /b//c\nreapply_sysctl_exclude=/etc/x*;/etc/y\nuname_string=Linux x\n\
              nonsense=1\nsleep_interval=soon\nupdate_interval=5\n",
        )
        .unwrap();
        assert_eq!((conf.daemon, conf.dynamic_tuning, conf.update_interval_s), (false, false, 5));
        assert_eq!((conf.log_file_max_size_bytes, conf.udev_buffer_size_bytes), (2 << 20, 4096));
        assert_eq!((conf.unix_socket_permissions, conf.unix_socket_ownership), (0o660, (0, -1)));
        assert_eq!(conf.rollback, Rollback::NotOnExit);
        assert_eq!(conf.profile_directories, ["/a", "/b/c"]);
        assert_eq!(conf.reapply_sysctl_exclude, ["/etc/x*", "/etc/y"]);
        assert_eq!((conf.uname_string.as_deref(), conf.sleep_interval_s), (Some("Linux x"), 1));
        let notes: Vec<String> =
            conf.notes.iter().map(|note| format!("{} {}", note.origin, note.text)).collect();
        assert_eq!(
            notes,
            [
                "/etc/tuned/tuned-main.conf:11 `nonsense` is no setting; passed over",
                "/etc/tuned/tuned-main.conf:12 `soon` is no value for sleep_interval; passed over",
            ]
        );
    }

    #[test]
    fn unreadable_and_unparsable_files_are_errors() {
        let host = FakeHost::new(&[]).unreadable(MAIN_CONF, 13);
        assert!(matches!(MainConf::read(&host), Err(ProfileError::Unreadable { .. })));
        assert!(matches!(MainConf::parse(b"a=\0"), Err(ProfileError::Syntax(_))));
        assert_eq!(MainConf::parse(b"profile_dirs=a,/b\n").unwrap().notes.len(), 1);
    }
}
