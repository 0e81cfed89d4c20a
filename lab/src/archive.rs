//! The tar files that go in and out of a guest: plain ustar, short names, regular files only.

use std::collections::BTreeMap;
use std::io::{self, Write};

const BLOCK: usize = 512;

/// Writes one file into a tar.
///
/// Fails if the name is longer than the 100 bytes of a plain header, or if writing fails.
pub(crate) fn append(to: &mut impl Write, name: &str, executable: bool, data: &[u8]) -> io::Result<()> {
    if name.len() > 100 {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{name}: name too long for the lab's tar"),
        ));
    }
    let mut header = [0_u8; BLOCK];
    let mut put = |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, name);
    put(100, if executable { "0000755" } else { "0000644" });
    put(108, "0000000");
    put(116, "0000000");
    put(124, &format!("{:011o}", data.len()));
    put(136, "00000000000");
    put(148, "        ");
    put(156, "0");
    put(257, "ustar");
    put(263, "00");
    let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    to.write_all(&header)?;
    to.write_all(data)?;
    to.write_all(&[0; BLOCK][..data.len().wrapping_neg() % BLOCK])
}

/// Writes the end of a tar.
pub(crate) fn finish(to: &mut impl Write) -> io::Result<()> {
    to.write_all(&[0; 2 * BLOCK])
}

/// The regular files of a tar, by name. Anything cut short at the end is left out.
pub(crate) fn read(tar: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut rest = tar;
    let mut long_name = None;
    while rest.len() >= BLOCK && rest[0] != 0 {
        let (header, after) = rest.split_at(BLOCK);
        let Some(size) = octal(&header[124..136]) else { break };
        let padded = size.div_ceil(BLOCK) * BLOCK;
        if after.len() < size {
            break;
        }
        let data = &after[..size];
        match header[156] {
            b'0' | 0 => {
                let name = long_name.take().unwrap_or_else(|| name_of(header));
                files.insert(name.trim_start_matches("./").to_owned(), data.to_vec());
            }
            // GNU's way to say a name of more than 100 bytes: it precedes the file.
            b'L' => long_name = Some(text(data)),
            _ => long_name = None,
        }
        rest = &after[padded.min(after.len())..];
    }
    files
}

fn name_of(header: &[u8]) -> String {
    let prefix = if &header[257..263] == b"ustar\0" { text(&header[345..500]) } else { String::new() };
    let name = text(&header[..100]);
    if prefix.is_empty() { name } else { format!("{prefix}/{name}") }
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn octal(field: &[u8]) -> Option<usize> {
    usize::from_str_radix(text(field).trim(), 8).ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_goes_in_comes_out() {
        let mut tar = Vec::new();
        super::append(&mut tar, "job", true, b"echo\n").unwrap();
        super::append(&mut tar, "out/empty", false, b"").unwrap();
        super::append(&mut tar, "out/block", false, &[7; 512]).unwrap();
        super::finish(&mut tar).unwrap();
        assert_eq!(tar.len() % 512, 0);
        let files = super::read(&tar);
        assert_eq!(files["job"], b"echo\n");
        assert_eq!(files["out/empty"], b"");
        assert_eq!(files["out/block"], [7; 512]);
        assert_eq!(files.len(), 3);
    }

    #[test]
    fn a_cut_or_empty_tar_gives_what_is_whole() {
        let mut tar = Vec::new();
        super::append(&mut tar, "a", false, b"1").unwrap();
        super::append(&mut tar, "b", false, &[1; 2000]).unwrap();
        assert_eq!(super::read(&tar[..2000]).len(), 1);
        assert!(super::read(&[0; 4096]).is_empty());
        assert!(super::read(b"").is_empty());
    }

    #[test]
    fn real_tar_understands_ours() {
        let dir = tempfile::tempdir().unwrap();
        let mut tar = Vec::new();
        super::append(&mut tar, "job", true, b"hello").unwrap();
        super::finish(&mut tar).unwrap();
        let path = dir.path().join("a.tar");
        std::fs::write(&path, tar).unwrap();
        let out = std::process::Command::new("tar").arg("xOf").arg(&path).arg("job").output().unwrap();
        assert_eq!(out.stdout, b"hello");
    }
}
