//! Kernel command lines, boot loader configurations and mount tables: secrets, addresses, servers.

use super::stand_ins::{Kind, StandIns};

pub(super) fn is_command_line(path: &str) -> bool {
    path == "/proc/cmdline"
        || path == "/etc/kernel/cmdline"
        || path.starts_with("/etc/default/grub")
        || path.ends_with("/grub.cfg")
        || path.ends_with("/grub-xen.cfg")
        || path.starts_with("/boot/loader/")
}

pub(super) fn is_mounts(path: &str) -> bool {
    path == "/etc/fstab"
        || (path.starts_with("/proc/")
            && ["mounts", "mountinfo", "mountstats"].contains(&super::last_part(path)))
}

/// Rewrites each word of a command line; white space stays.
pub(super) fn rewrite(text: &str, stand_ins: &mut StandIns) -> String {
    words(text, |word| argument(word, stand_ins))
}

fn words(text: &str, mut change: impl FnMut(&str) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    for piece in text.split_inclusive(char::is_whitespace) {
        let word = piece.trim_end_matches(char::is_whitespace);
        out.push_str(&change(word));
        out.push_str(piece.get(word.len()..).unwrap_or(""));
    }
    out
}

/// Keys that hold addresses of this machine or its servers.
const ADDRESSED: [&str; 13] = [
    "ip",
    "nfsroot",
    "nfsaddrs",
    "nameserver",
    "netroot",
    "root",
    "rd.route",
    "rd.iscsi.initiator",
    "iscsi_target_ip",
    "iscsi_initiator",
    "rd.iscsi.target.ip",
    "rd.nvmf.discover",
    "bootserver",
];

fn argument(word: &str, stand_ins: &mut StandIns) -> String {
    let Some((key, value)) = word.split_once('=') else { return word.to_owned() };
    let bare = key.trim_start_matches(['"', '\'', '-']);
    if is_secret(bare) && !value.is_empty() {
        let quote = if value.ends_with('"') && !value.starts_with('"') { "\"" } else { "" };
        return format!("{key}=hidden{quote}");
    }
    if value.contains("://") {
        return format!("{key}={}", authorities(value, stand_ins));
    }
    if bare == "rd.iscsi.initiator" || bare == "iscsi_initiator" {
        return format!("{key}={}", stand_ins.named(Kind::Server, "server", value));
    }
    if bare == "ip" {
        return format!("{key}={}", ip_argument(value, stand_ins));
    }
    let remote = ["nfs", "iscsi:", "nbd:", "nvmf"].iter().any(|start| value.starts_with(start));
    if ADDRESSED.contains(&bare) && (bare != "root" || remote) {
        let value = without_credentials(value);
        return format!("{key}={}", rewrite_addresses(&value, stand_ins));
    }
    word.to_owned()
}

/// Whether a key announces a secret. `keymap` and `keytable` are about keyboards.
fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    let secret = ["pass", "token", "secret", "key", "cred", "chap"].iter().any(|word| key.contains(word));
    secret && !["keymap", "keytable", "keyboard", "keyring_"].iter().any(|word| key.contains(word))
}

/// `scheme://user:password@host:port/path`: what stands between `//` and the next slash becomes a server's
/// stand-in.
fn authorities(value: &str, stand_ins: &mut StandIns) -> String {
    let Some((scheme, rest)) = value.split_once("://") else { return value.to_owned() };
    let length = rest.find(['/', '"', '\'', ',', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(length);
    if authority.is_empty() {
        return value.to_owned();
    }
    format!("{scheme}://{}{path}", stand_ins.named(Kind::Server, "server", authority))
}

/// `netroot=iscsi:user:password@192.0.2.1::…`
fn without_credentials(value: &str) -> String {
    match value.rsplit_once('@') {
        Some((front, host)) => {
            let scheme = front.split(':').next().unwrap_or("");
            format!("{scheme}:hidden@{host}")
        }
        None => value.to_owned(),
    }
}

/// `client:server:gateway:mask:hostname:device:autoconf` (`Documentation/admin-guide/nfs/nfsroot.rst`).
fn ip_argument(value: &str, stand_ins: &mut StandIns) -> String {
    let value = rewrite_addresses(value, stand_ins);
    let fields: Vec<&str> = value.split(':').collect();
    if value.contains('[') || fields.len() < 6 {
        return value;
    }
    let field = |(index, text): (usize, &&str)| match index {
        4 if !text.is_empty() => stand_ins.named(Kind::Host, "host", text.split('.').next().unwrap_or(text)),
        _ => (*text).to_owned(),
    };
    fields.iter().enumerate().map(field).collect::<Vec<_>>().join(":")
}

/// Replaces dotted addresses, and those with colons in brackets. Both must stand alone: three dots are also in
/// versions (`6.1.0.13-amd64`).
pub(super) fn rewrite_addresses(text: &str, stand_ins: &mut StandIns) -> String {
    let mut out = String::with_capacity(text.len());
    let part = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_');
    let mut rest = text;
    while !rest.is_empty() {
        if let Some((address, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'))
            && address.contains(':')
            && address.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':')
        {
            out.extend(["[", &stand_ins.address6(address), "]"]);
            rest = after;
            continue;
        }
        let length = rest.find(|letter: char| !part(letter)).unwrap_or(rest.len());
        if length == 0 {
            let letter = rest.chars().next().map_or(1, char::len_utf8);
            out.push_str(rest.get(..letter).unwrap_or(""));
            rest = rest.get(letter..).unwrap_or("");
            continue;
        }
        let (word, after) = rest.split_at(length);
        out.push_str(&if is_address(word) { stand_ins.address(word) } else { word.to_owned() });
        rest = after;
    }
    out
}

fn is_address(word: &str) -> bool {
    let parts: Vec<&str> = word.split('.').collect();
    let number = |part: &&str| {
        part.len() <= 3 && part.bytes().all(|byte| byte.is_ascii_digit()) && part.parse::<u8>().is_ok()
    };
    parts.len() == 4 && parts.iter().all(number)
}

/// Rewrites addresses and the servers of network file systems (`server:/path`, `//server/share`).
pub(super) fn rewrite_mounts(text: &str, stand_ins: &mut StandIns) -> String {
    let text = rewrite_addresses(text, stand_ins);
    words(&text, |word| {
        if let Some(rest) = word.strip_prefix("//")
            && let Some((server, share)) = rest.split_once('/')
        {
            return format!("//{}/{share}", server_name(server, stand_ins));
        }
        match word.split_once(":/") {
            Some((server, path)) if !server.is_empty() && !server.contains(['/', '=', '[']) => {
                format!("{}:/{path}", server_name(server, stand_ins))
            }
            _ => options(word),
        }
    })
}

fn server_name(server: &str, stand_ins: &mut StandIns) -> String {
    if is_address(server) { server.to_owned() } else { stand_ins.named(Kind::Server, "server", server) }
}

/// Mount options that hold a user's name or a secret.
fn options(word: &str) -> String {
    let hidden = ["username=", "user=", "password=", "pass=", "credentials=", "domain=", "secret=", "name="];
    if !word.contains('=') {
        return word.to_owned();
    }
    let option = |option: &str| match hidden.iter().find(|start| option.starts_with(**start)) {
        Some(start) => format!("{start}hidden"),
        None => option.to_owned(),
    };
    word.split(',').map(option).collect::<Vec<_>>().join(",")
}
