//! Just enough of QEMU's control protocol to take a snapshot.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A connection to a running QEMU.
pub(crate) struct Qmp {
    lines: BufReader<UnixStream>,
}

impl Qmp {
    /// Connects, and says that we are ready for commands.
    pub(crate) fn connect(socket: &Path) -> std::io::Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(Duration::from_secs(300)))?;
        let mut qmp = Self { lines: BufReader::new(stream) };
        qmp.answer()?; // the greeting
        qmp.command("qmp_capabilities", &json!({}))?;
        Ok(qmp)
    }

    /// One answer; events in between are skipped.
    fn answer(&mut self) -> std::io::Result<Value> {
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line)? == 0 {
                return Err(std::io::Error::other("QEMU closed its control socket"));
            }
            let value: Value = serde_json::from_str(&line).map_err(std::io::Error::other)?;
            if let Some(error) = value.get("error") {
                return Err(std::io::Error::other(format!("QEMU refused: {}", error["desc"])));
            }
            if value.get("event").is_none() {
                return Ok(value);
            }
        }
    }

    fn command(&mut self, name: &str, arguments: &Value) -> std::io::Result<Value> {
        let line = format!("{}\n", json!({ "execute": name, "arguments": arguments }));
        self.lines.get_mut().write_all(line.as_bytes())?;
        Ok(self.answer()?["return"].take())
    }

    /// Saves the guest's state into a file (the guest stops), then ends QEMU.
    pub(crate) fn save(mut self, to: &Path, limit: Duration) -> std::io::Result<()> {
        let started = Instant::now();
        self.command("migrate-set-parameters", &json!({ "max-bandwidth": 4_u64 << 30 }))?;
        self.command("migrate", &json!({ "uri": format!("exec:cat > '{}'", to.display()) }))?;
        loop {
            let status = self.command("query-migrate", &json!({}))?;
            match status["status"].as_str() {
                Some("completed") => break,
                Some("failed" | "cancelled") => {
                    return Err(std::io::Error::other(format!("no snapshot: {status}")));
                }
                _ if started.elapsed() > limit => {
                    return Err(std::io::Error::other("saving the state takes too long"));
                }
                _ => std::thread::sleep(Duration::from_millis(20)),
            }
        }
        drop(self.command("quit", &json!({})));
        Ok(())
    }
}
