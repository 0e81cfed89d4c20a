//! The only door to the machine.
//!
//! Everything zenkai learns goes through [`Host`], everything it changes through [`TunableHost`]. A host may be
//! the live machine ([`LiveHost`]), any directory that looks like a machine's root ([`RootDir`]), or a capture
//! replayed from a text file ([`FakeHost`]); whoever holds a `&dyn Host` cannot tell the difference and cannot
//! write. This is also the only crate that may contain unsafe code.

mod act;
mod anonymise;
mod answered;
mod capture;
mod derived;
mod errno;
mod fake;
mod hidden;
mod host;
mod knob;
mod live;
mod mountinfo;
mod plain_file;
mod query;
mod recording;
mod root_dir;

pub mod dcmi;
pub mod gauges;
pub mod probe;
pub mod workload;

pub use act::{Act, Finished};
pub use answered::AnsweredHost;
pub use capture::{Capture, CaptureError};
pub use errno::{NotRecorded, errno_name};
pub use fake::{FakeHost, StoreRule};
pub use hidden::is_hidden;
pub use host::{DirEntry, EntryKind, FILE_SIZE_LIMIT, Host, TunableHost};
pub use knob::{DiskParameter, Knob, TaskParameter, Value, value};
pub use live::{HeldLatency, LiveHost, append_log, hold_cpu_dma_latency, local_time, trusted_file};
pub use mountinfo::unescape_mount;
pub use plain_file::read_plain_file;
pub use query::{EthtoolRequest, Query, QueryParseError, Reply};
pub use recording::RecordingHost;
pub use root_dir::RootDir;
