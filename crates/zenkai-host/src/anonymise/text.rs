//! Rewrites texts and paths: known words, and whatever has the shape of an identity.

use super::{
    literals::{Literals, Word, is_filler},
    stand_ins::{Kind, StandIns},
};

#[derive(Debug)]
pub(super) struct Rewriter {
    literals: Literals,
    pub(super) stand_ins: StandIns,
}

/// Identifiers that EFI itself defines: code asks for variables by them, and they are the same on every machine.
const EFI_GLOBAL: &str = "8be4df61-93ca-11d2-aa0d-00e098032b8c";

impl Rewriter {
    pub(super) fn new(literals: Literals) -> Self {
        Self { literals, stand_ins: StandIns::default() }
    }

    /// A path, whose parts are names that people may have given unless the kernel made it.
    pub(super) fn path(&mut self, path: &str) -> String {
        let kernel = path.starts_with("/sys/") || path.starts_with("/proc/");
        self.rewrite(path, !kernel)
    }

    /// Any text.
    pub(super) fn text(&mut self, text: &str) -> String {
        self.rewrite(text, false)
    }

    /// A text with names that people give.
    pub(super) fn text_with_names(&mut self, text: &str) -> String {
        self.rewrite(text, true)
    }

    /// The host's name itself.
    pub(super) fn host_name(&mut self, name: &str) -> String {
        if is_filler(name) || name.starts_with("localhost") {
            return name.to_owned();
        }
        self.stand_ins.named(Kind::Host, "host", name.split('.').next().unwrap_or(name))
    }

    /// The whole content of a file that holds a serial number.
    pub(super) fn serial(&mut self, value: &str) -> String {
        let one_shape = shape(value, 0).filter(|(length, _)| *length == value.len());
        match one_shape {
            Some((_, shape)) => self.replace(value, shape),
            None if is_filler(value) => value.to_owned(),
            None => self.stand_ins.serial(value),
        }
    }

    fn rewrite(&mut self, text: &str, named: bool) -> String {
        let mut out = String::with_capacity(text.len());
        let mut kept = 0;
        let mut place = 0;
        while place < text.len() {
            let found = self.find(text, place, named);
            let Some((length, replacement)) = found else {
                place += 1;
                continue;
            };
            out.push_str(text.get(kept..place).unwrap_or(""));
            out.push_str(&replacement);
            place += length.max(1);
            kept = place;
        }
        out.push_str(text.get(kept..).unwrap_or(""));
        out
    }

    /// What has to be replaced at a place: how long it is, and by what.
    fn find(&mut self, text: &str, place: usize, named: bool) -> Option<(usize, String)> {
        if !text.is_char_boundary(place) {
            return None;
        }
        if let Some((length, shape)) = shape(text, place) {
            let original = text.get(place..place + length)?.to_owned();
            return Some((length, self.replace(&original, shape)));
        }
        let (word, kind) = self.literals.at(text, place, named)?;
        let (length, word) = (word.len(), word.to_owned());
        Some(match kind {
            Word::Host => (length, self.host_name(&word.replace("--", "-").replace("\\x2d", "-"))),
            Word::Serial => (length, self.stand_ins.serial(&word)),
        })
    }

    fn replace(&mut self, original: &str, shape: Shape) -> String {
        let stand_ins = &mut self.stand_ins;
        match shape {
            Shape::Uuid if original.eq_ignore_ascii_case(EFI_GLOBAL) => original.to_owned(),
            Shape::Uuid => stand_ins.uuid(original),
            Shape::ArrayUuid => stand_ins.array_uuid(original),
            Shape::Hexadecimal => stand_ins.hexadecimal(original),
            Shape::Pairs(separator) => {
                let pairs: Vec<&str> = original.split(separator).collect();
                // `01-` before the address of a boot interface is the kind of hardware.
                let skip = usize::from(pairs.len() == 7);
                let (kind, address) = pairs.split_at(skip);
                let address = stand_ins.mac(address);
                let all: Vec<&str> = kind.iter().copied().chain(address.iter().map(String::as_str)).collect();
                all.join(&separator.to_string())
            }
            Shape::InterfaceName => {
                let (start, digits) = original.split_at(3);
                let pairs: Vec<&str> = (0..6).filter_map(|pair| digits.get(pair * 2..pair * 2 + 2)).collect();
                format!("{start}{}", stand_ins.mac(&pairs).concat())
            }
            Shape::Prefixed(length) => {
                let (start, rest) = original.split_at(length);
                format!("{start}{}", stand_ins.hexadecimal(rest))
            }
            Shape::Volume(length) => {
                let (start, rest) = original.split_at(length);
                format!("{start}{}", stand_ins.lvm(rest))
            }
            Shape::ShortUuid(length) => {
                let (start, rest) = original.split_at(length);
                format!("{start}{}", stand_ins.short_uuid(rest))
            }
            Shape::Home(length, end) => {
                let (start, rest) = original.split_at(length);
                let (user, tail) = rest.split_at(rest.len() - end);
                format!("{start}{}{tail}", stand_ins.named(Kind::User, "user", user))
            }
            Shape::DiskId(length) => {
                let (start, rest) = original.split_at(length);
                let part = rest.rfind("-part").filter(|at| {
                    rest.get(at + 5..).is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
                });
                let (id, part) = rest.split_at(part.unwrap_or(rest.len()));
                format!("{start}{}{part}", stand_ins.named(Kind::DiskId, "id", id))
            }
        }
    }
}

/// What an identity looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// 8-4-4-4-12 hexadecimal digits.
    Uuid,
    /// Four times eight hexadecimal digits with colons.
    ArrayUuid,
    /// 32, 40 or 64 hexadecimal digits: machine ids, containers.
    Hexadecimal,
    /// MAC addresses and the like: 6, 8 or 20 pairs of digits, with this in between.
    Pairs(char),
    /// `enx` and a MAC address.
    InterfaceName,
    /// A prefix of this length and hexadecimal digits: `eui.…`, `naa.…`.
    Prefixed(usize),
    /// A prefix of this length and an identifier of LVM.
    Volume(usize),
    /// A prefix of this length and an identifier of another form than a UUID's.
    ShortUuid(usize),
    /// A prefix of this length, a user's name, and an ending of this length.
    Home(usize, usize),
    /// A prefix of this length and a name of udev's that holds a serial number.
    DiskId(usize),
}

/// The identity at a place, by its shape, and its length. Nothing starts or ends inside a longer word.
fn shape(text: &str, place: usize) -> Option<(usize, Shape)> {
    let bytes = text.as_bytes();
    let rest = bytes.get(place..)?;
    let before = place.checked_sub(1).and_then(|before| bytes.get(before)).copied();
    if before.is_some_and(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    if rest.first() == Some(&b'/') {
        return disk_id(rest).or_else(|| home(rest, before));
    }
    if rest.starts_with(b"home-") {
        return home_unit(rest);
    }
    let in_pairs = before == Some(b':') || before == Some(b'-');
    groups(rest, &[8, 4, 4, 4, 12], b'-')
        .map(|length| (length, Shape::Uuid))
        .or_else(|| groups(rest, &[8, 8, 8, 8], b':').map(|length| (length, Shape::ArrayUuid)))
        .or_else(|| {
            pairs(rest, b':').filter(|_| !(in_pairs && before == Some(b':') && pairs_before(bytes, place)))
        })
        .or_else(|| pairs(rest, b'-'))
        .or_else(|| interface_name(rest))
        .or_else(|| prefixed(rest))
        .or_else(|| hexadecimal(rest))
}

/// Whether two hexadecimal digits stand before the colon before a place: then the place is in the middle of a run of
/// pairs that as a whole is no address.
fn pairs_before(bytes: &[u8], place: usize) -> bool {
    let at = |back: usize| place.checked_sub(back).and_then(|at| bytes.get(at));
    at(2).is_some_and(u8::is_ascii_hexdigit) && at(3).is_some_and(u8::is_ascii_hexdigit)
}

fn run(bytes: &[u8], fits: impl Fn(&u8) -> bool) -> usize {
    bytes.iter().take_while(|byte| fits(byte)).count()
}

/// Ends where no letter or digit goes on.
fn ends(bytes: &[u8], length: usize) -> Option<usize> {
    (!bytes.get(length).is_some_and(u8::is_ascii_alphanumeric)).then_some(length)
}

fn groups(bytes: &[u8], sizes: &[usize], separator: u8) -> Option<usize> {
    let mut at = 0;
    for (index, size) in sizes.iter().enumerate() {
        if index > 0 {
            if bytes.get(at) != Some(&separator) {
                return None;
            }
            at += 1;
        }
        let group = bytes.get(at..at + size)?;
        if !group.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        at += size;
    }
    ends(bytes, at)
}

fn pairs(bytes: &[u8], separator: u8) -> Option<(usize, Shape)> {
    let mut count = 0;
    let mut at = 0;
    loop {
        let pair = bytes.get(at..at + 2)?;
        if !pair.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        count += 1;
        at += 2;
        if bytes.get(at) != Some(&separator)
            || count > 20
            || !bytes.get(at + 1).is_some_and(u8::is_ascii_hexdigit)
        {
            break;
        }
        at += 1;
    }
    let sizes: &[usize] = if separator == b':' { &[6, 8, 20] } else { &[6, 7] };
    ends(bytes, at)
        .filter(|_| sizes.contains(&count))
        .map(|length| (length, Shape::Pairs(char::from(separator))))
}

fn interface_name(bytes: &[u8]) -> Option<(usize, Shape)> {
    let named = bytes.starts_with(b"enx") || bytes.starts_with(b"wlx");
    let digits = run(bytes.get(3..)?, u8::is_ascii_hexdigit);
    (named && digits == 12).then(|| ends(bytes, 15)).flatten().map(|length| (length, Shape::InterfaceName))
}

/// World-wide names and volume identifiers behind the words that announce them.
fn prefixed(bytes: &[u8]) -> Option<(usize, Shape)> {
    for start in ["eui.", "naa.", "wwn-0x", "mpath-", "uuid.", "0x5", "0x6"] {
        let Some(rest) = bytes.strip_prefix(start.as_bytes()) else { continue };
        let digits = run(rest, u8::is_ascii_hexdigit);
        // World-wide names have 16 or 32 digits, of which 5 or 6 is the first; `0x5` alone is any number.
        let (fits, skip) = if start.starts_with("0x") {
            (digits == 15 || digits == 31, 2)
        } else {
            (digits >= 12, start.len())
        };
        if fits {
            return ends(rest, digits).map(|length| (start.len() + length, Shape::Prefixed(skip)));
        }
    }
    if let Some(rest) = bytes.strip_prefix(b"LVM-") {
        let letters = run(rest, u8::is_ascii_alphanumeric);
        return [32, 64].contains(&letters).then_some((4 + letters, Shape::Volume(4)));
    }
    for start in ["UUID=", "PARTUUID="] {
        let Some(rest) = bytes.strip_prefix(start.as_bytes()) else { continue };
        let letters = run(rest, |byte| byte.is_ascii_hexdigit() || *byte == b'-');
        let whole = groups(rest, &[8, 4, 4, 4, 12], b'-').is_some();
        return (!whole && letters >= 8).then_some((start.len() + letters, Shape::ShortUuid(start.len())));
    }
    lvm_uuid(bytes)
}

/// 6-4-4-4-4-4-6 letters and digits.
fn lvm_uuid(bytes: &[u8]) -> Option<(usize, Shape)> {
    let mut at = 0;
    for (index, size) in [6, 4, 4, 4, 4, 4, 6].into_iter().enumerate() {
        if index > 0 {
            (bytes.get(at) == Some(&b'-')).then_some(())?;
            at += 1;
        }
        bytes.get(at..at + size)?.iter().all(u8::is_ascii_alphanumeric).then_some(())?;
        at += size;
    }
    // Words with dashes may have this shape; identifiers mix letters and digits.
    let mixed = bytes.get(..at)?.iter().any(u8::is_ascii_digit);
    ends(bytes, at).filter(|_| mixed).map(|length| (length, Shape::Volume(0)))
}

fn hexadecimal(bytes: &[u8]) -> Option<(usize, Shape)> {
    let digits = run(bytes, u8::is_ascii_hexdigit);
    [32, 40, 64]
        .contains(&digits)
        .then(|| ends(bytes, digits))
        .flatten()
        .map(|length| (length, Shape::Hexadecimal))
}

fn name_length(bytes: &[u8]) -> usize {
    run(bytes, |byte| !byte.is_ascii_whitespace() && !matches!(byte, b'/' | b'"' | b'\'' | b',' | b':'))
}

fn disk_id(bytes: &[u8]) -> Option<(usize, Shape)> {
    for start in ["/dev/disk/by-id/", "/dev/disk/by-uuid/", "/dev/disk/by-partuuid/"] {
        if let Some(rest) = bytes.strip_prefix(start.as_bytes()) {
            // Names may hold colons (`dm-uuid-…`, `scsi-…`).
            let length =
                run(rest, |byte| !byte.is_ascii_whitespace() && !matches!(byte, b'/' | b'"' | b'\'' | b','));
            let shaped = groups(rest, &[8, 4, 4, 4, 12], b'-') == Some(length);
            return (length > 0 && !shaped).then_some((start.len() + length, Shape::DiskId(start.len())));
        }
    }
    None
}

fn home(bytes: &[u8], before: Option<u8>) -> Option<(usize, Shape)> {
    if before
        .is_some_and(|byte| !byte.is_ascii_whitespace() && !matches!(byte, b'=' | b':' | b'"' | b'\'' | b','))
    {
        return None;
    }
    for start in ["/home/", "/Users/", "/var/home/"] {
        if let Some(rest) = bytes.strip_prefix(start.as_bytes()) {
            let length = name_length(rest);
            return (length > 0).then_some((start.len() + length, Shape::Home(start.len(), 0)));
        }
    }
    None
}

/// systemd's name for what is mounted on a home directory.
fn home_unit(bytes: &[u8]) -> Option<(usize, Shape)> {
    let length =
        run(bytes, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'\\' | b'@'));
    let ending = b".mount";
    let name = bytes.get(..length)?.strip_suffix(ending)?;
    (name.len() > 5).then_some((length, Shape::Home(5, ending.len())))
}
