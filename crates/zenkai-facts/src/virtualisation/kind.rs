//! Which hypervisor, if any.

use std::fmt;

use serde::{Serialize, Serializer};
use zenkai_host::Query;

use crate::{Observed, Reader, Reason};

/// What runs below this kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Nothing: the kernel runs on the hardware.
    Metal,
    /// A KVM guest.
    Kvm,
    /// A VMware guest.
    Vmware,
    /// A Hyper-V guest.
    HyperV,
    /// Windows' or Azure's root partition: it owns the devices, the hypervisor owns the CPUs.
    HyperVRoot,
    /// Xen's control domain: it owns the devices, Xen owns the CPUs.
    XenDom0,
    /// A paravirtual Xen guest (no hardware virtualisation at all).
    XenPv,
    /// A Xen guest in PVH mode.
    XenPvh,
    /// A fully virtual Xen guest.
    XenHvm,
    /// A Firecracker micro-VM (KVM with few devices and no firmware).
    Firecracker,
    /// QEMU without hardware virtualisation (TCG).
    Qemu,
    /// Another one, by name.
    Other(String),
}

impl Kind {
    /// Whether the devices we see are a hypervisor's.
    pub fn is_guest(&self) -> bool {
        !matches!(self, Self::Metal | Self::XenDom0 | Self::HyperVRoot)
    }

    /// Whether Xen is below us, in whatever role.
    pub fn is_xen(&self) -> bool {
        matches!(self, Self::XenDom0 | Self::XenPv | Self::XenPvh | Self::XenHvm)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Metal => "metal",
            Self::Kvm => "kvm",
            Self::Vmware => "vmware",
            Self::HyperV => "hyper-v",
            Self::HyperVRoot => "hyper-v-root",
            Self::XenDom0 => "xen-dom0",
            Self::XenPv => "xen-pv",
            Self::XenPvh => "xen-pvh",
            Self::XenHvm => "xen-hvm",
            Self::Firecracker => "firecracker",
            Self::Qemu => "qemu",
            Self::Other(name) => name,
        })
    }
}

/// As its plain name.
impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

const XEN_TYPE: &str = "/sys/hypervisor/type";
/// Bit of `XENFEAT_dom0` (`xen/include/public/features.h`).
const XEN_FEATURE_DOM0: u32 = 11;
const CPUID_BASE: u32 = 0x4000_0000;
/// Where Xen and KVM put their own leaves when Hyper-V's come first, to please Windows
/// (`arch/x86/include/asm/processor.h`, `hypervisor_cpuid_base`).
const CPUID_SECOND_BASE: u32 = 0x4000_0100;

pub(super) fn observe(reader: &Reader<'_>) -> Observed<Kind> {
    if let Some(kind) = xen(reader) {
        return kind;
    }
    // Without CPUID (another architecture, a directory) the kernel's own summary has to do.
    let hypervisor_bit = reader.query(&Query::Cpuid { leaf: 1, subleaf: 0 }, |reply| {
        Some(reply.numbers()?.get(2)? & (1 << 31) != 0)
    });
    match hypervisor_bit.value() {
        Some(false) => hypervisor_bit.map(|_| Kind::Metal),
        Some(true) => from_cpuid(reader),
        None => from_cpuinfo(reader),
    }
}

/// Xen tells of itself in sysfs in every mode, also where it shows Hyper-V's CPUID leaves to please Windows.
fn xen(reader: &Reader<'_>) -> Option<Observed<Kind>> {
    let name = reader.text(XEN_TYPE);
    if name.text() != Some("xen") {
        return None;
    }
    let capabilities = reader.text("/proc/xen/capabilities");
    if capabilities.text().is_some_and(|text| text.contains("control_d")) {
        return Some(capabilities.map(|_| Kind::XenDom0));
    }
    let features = reader.text("/sys/hypervisor/properties/features");
    let bits = features.text().and_then(|text| u32::from_str_radix(text, 16).ok());
    if bits.is_some_and(|bits| bits & (1 << XEN_FEATURE_DOM0) != 0) {
        return Some(features.map(|_| Kind::XenDom0));
    }
    let mode = reader.text("/sys/hypervisor/guest_type");
    if mode.get().is_some() {
        return Some(mode.parse(|text| match text.as_str() {
            "PV" => Ok(Kind::XenPv),
            "PVH" => Ok(Kind::XenPvh),
            "HVM" => Ok(Kind::XenHvm),
            _ => Err("an unknown Xen guest type".to_owned()),
        }));
    }
    // Kernels before 4.13 do not tell the mode; a fully virtual guest has Xen's own DMI table.
    let product = reader.text("/sys/class/dmi/id/product_name");
    Some(match product.text() {
        Some("HVM domU") => product.map(|_| Kind::XenHvm),
        _ => name.map(|_| Kind::Other("xen".to_owned())),
    })
}

fn from_cpuid(reader: &Reader<'_>) -> Observed<Kind> {
    let signature = signature(reader, CPUID_BASE);
    let Some(name) = signature.text().map(str::to_owned) else { return from_dmi(reader) };
    let by_dmi = || from_dmi(reader);
    match name.as_str() {
        "KVMKVMKVM" | "Linux KVM Hv" => kvm(reader, signature.map(|_| Kind::Kvm)),
        "VMwareVMware" => signature.map(|_| Kind::Vmware),
        "XenVMMXenVMM" => signature.map(|_| Kind::XenHvm),
        "TCGTCGTCGTCG" => signature.map(|_| Kind::Qemu),
        "Microsoft Hv" => hyper_v(reader, signature),
        "bhyve bhyve" => signature.map(|_| Kind::Other("bhyve".to_owned())),
        "prl hyperv" | "lrpepyh vr" => signature.map(|_| Kind::Other("parallels".to_owned())),
        "VBoxVBoxVBox" => signature.map(|_| Kind::Other("virtualbox".to_owned())),
        "ACRNACRNACRN" => signature.map(|_| Kind::Other("acrn".to_owned())),
        _ => match by_dmi() {
            known if known.get().is_some() => known,
            _ => signature.map(|_| Kind::Other("unknown hypervisor".to_owned())),
        },
    }
}

/// The twelve letters a hypervisor signs with.
fn signature(reader: &Reader<'_>, leaf: u32) -> Observed<String> {
    reader.query(&Query::Cpuid { leaf, subleaf: 0 }, |reply| {
        let numbers = reply.numbers()?;
        let mut bytes = Vec::with_capacity(12);
        for number in numbers.get(1..4)? {
            bytes.extend_from_slice(&u32::try_from(*number).ok()?.to_le_bytes());
        }
        let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
        let text = text.trim_matches(|letter: char| letter == '\0' || letter == ' ');
        text.chars().all(|letter| letter == ' ' || letter.is_ascii_graphic()).then(|| text.to_owned())
    })
}

/// Hyper-V's leaves are shown by Hyper-V, by its root partition, and by Xen and KVM in disguise.
fn hyper_v(reader: &Reader<'_>, first: Observed<String>) -> Observed<Kind> {
    let second = signature(reader, CPUID_SECOND_BASE);
    match second.text() {
        Some("XenVMMXenVMM") => return second.map(|_| Kind::XenHvm),
        Some("KVMKVMKVM") => return kvm(reader, second.map(|_| Kind::Kvm)),
        _ => {}
    }
    let by_dmi = from_dmi(reader);
    if by_dmi.get().is_some_and(|kind| *kind != Kind::HyperV) {
        return by_dmi;
    }
    // Bit 0 of ebx: this partition may create others (Hyper-V TLFS, "CreatePartitions").
    let privileges = reader
        .query(&Query::Cpuid { leaf: 0x4000_0003, subleaf: 0 }, |reply| Some(reply.numbers()?.get(1)? & 1));
    if privileges.value() == Some(1) {
        privileges.map(|_| Kind::HyperVRoot)
    } else {
        first.map(|_| Kind::HyperV)
    }
}

/// KVM serves QEMU, VirtualBox' disguise and Firecracker alike.
fn kvm(reader: &Reader<'_>, found: Observed<Kind>) -> Observed<Kind> {
    let by_dmi = from_dmi(reader);
    match by_dmi.get() {
        Some(Kind::Other(_)) => by_dmi,
        None if by_dmi.is_absent() => firecracker(reader).unwrap_or(found),
        _ => found,
    }
}

/// Firecracker has no DMI. Since 1.8 it signs its ACPI tables; before that only the command line it adds itself
/// tells of it (`src/vmm/src/vmm_config/boot_source.rs`: `reboot=k panic=1 pci=off`, then `virtio_mmio.device=`).
fn firecracker(reader: &Reader<'_>) -> Option<Observed<Kind>> {
    let table = reader.bytes("/sys/firmware/acpi/tables/FACP");
    if table.get().is_some_and(|bytes| bytes.get(10..16) == Some(b"FIRECK")) {
        return Some(table.map(|_| Kind::Firecracker));
    }
    let line = reader.text("/proc/cmdline");
    let text = line.text()?;
    let has = |word: &str| text.split_whitespace().any(|argument| argument == word);
    let mmio = text.split_whitespace().any(|argument| argument.starts_with("virtio_mmio.device="));
    // An ACPI table that could be read and is signed otherwise is another micro-VM (QEMU's, for one).
    let unsigned = table.get().is_none();
    (unsigned && has("reboot=k") && (mmio || has("panic=1"))).then(|| line.map(|_| Kind::Firecracker))
}

/// Without CPUID: `hypervisor` among the flags of x86; elsewhere the device tree and DMI.
fn from_cpuinfo(reader: &Reader<'_>) -> Observed<Kind> {
    let info = reader.text("/proc/cpuinfo");
    let flags = info.text().and_then(|text| {
        text.lines().find_map(|line| line.strip_prefix("flags")?.trim_start().strip_prefix(':'))
    });
    match flags.map(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor")) {
        Some(false) => info.map(|_| Kind::Metal),
        Some(true) => {
            let by_dmi = from_dmi(reader);
            match by_dmi.get() {
                Some(kind) if kind.is_guest() => by_dmi,
                _ => firecracker(reader)
                    .unwrap_or_else(|| info.map(|_| Kind::Other("unknown hypervisor".to_owned()))),
            }
        }
        None => from_device_tree(reader),
    }
}

fn from_device_tree(reader: &Reader<'_>) -> Observed<Kind> {
    let node = reader.text("/proc/device-tree/hypervisor/compatible");
    match node.text() {
        Some(text) if text.contains("linux,kvm") => return node.map(|_| Kind::Kvm),
        Some(text) if text.contains("xen,xen") => return node.map(|_| Kind::XenPvh),
        _ => {}
    }
    let machine = reader.text("/proc/device-tree/compatible");
    if machine.text().is_some_and(|text| text.contains("linux,dummy-virt")) {
        return machine.map(|_| Kind::Kvm);
    }
    let by_dmi = from_dmi(reader);
    // A machine that tells who built it, and names no hypervisor, is that machine.
    if matches!(by_dmi.reason(), Some(Reason::NotApplicable(_))) {
        return Observed::known(by_dmi.source(), Kind::Metal);
    }
    if machine.get().is_some() { machine.map(|_| Kind::Metal) } else { by_dmi }
}

/// What the firmware's identity tells; "not applicable" when it is there and names no hypervisor.
fn from_dmi(reader: &Reader<'_>) -> Observed<Kind> {
    let vendor = reader.text("/sys/class/dmi/id/sys_vendor");
    let product = reader.text("/sys/class/dmi/id/product_name");
    if let Some(kind) = kind_of_dmi(vendor.text().unwrap_or(""), product.text().unwrap_or("")) {
        return Observed::known(vendor.source(), kind);
    }
    let unnamed = Reason::NotApplicable("the firmware names no hypervisor".to_owned());
    Observed::unavailable(vendor.source(), vendor.reason().cloned().unwrap_or(unnamed))
}

fn kind_of_dmi(vendor: &str, product: &str) -> Option<Kind> {
    let other = |name: &str| Some(Kind::Other(name.to_owned()));
    if vendor == "Amazon EC2" {
        return (!product.contains(".metal")).then_some(Kind::Kvm);
    }
    if product == "VirtualBox" {
        return other("virtualbox");
    }
    if vendor.starts_with("VMware") {
        return Some(Kind::Vmware);
    }
    if vendor == "Xen" || product == "HVM domU" {
        return Some(Kind::XenHvm);
    }
    if vendor == "Microsoft Corporation" && product.starts_with("Virtual Machine") {
        return Some(Kind::HyperV);
    }
    if vendor.starts_with("Parallels") {
        return other("parallels");
    }
    if vendor == "BHYVE" || product == "BHYVE" {
        return other("bhyve");
    }
    let kvm_vendors =
        ["QEMU", "Google", "DigitalOcean", "Alibaba Cloud", "OpenStack Foundation", "Nutanix", "Scaleway"];
    let kvm = vendor == "QEMU"
        || product == "KVM"
        || product == "RHEV Hypervisor"
        || product == "Cloud Hypervisor"
        || product.starts_with("cloud-hypervisor")
        || product == "Google Compute Engine"
        || product.starts_with("KVM Virtual Machine")
        || (kvm_vendors.contains(&vendor) && (product.contains("Virtual") || product.contains("Droplet")))
        || product == "OpenStack Nova"
        || product == "OpenStack Compute"
        || product == "Alibaba Cloud ECS";
    kvm.then_some(Kind::Kvm)
}

/// Where a boot loader's configuration keeps the line that starts Xen.
const BOOT_FILES: [&str; 5] = [
    "/boot/grub/grub.cfg",
    "/boot/grub2/grub.cfg",
    "/boot/efi/EFI/xenserver/grub.cfg",
    "/boot/efi/EFI/xenserver/grub-xen.cfg",
    "/etc/default/grub",
];

pub(super) fn xen_command_line(reader: &Reader<'_>, kind: Option<&Kind>) -> Observed<String> {
    if kind != Some(&Kind::XenDom0) {
        return Observed::unavailable(XEN_TYPE, Reason::NotApplicable("not a Xen dom0".to_owned()));
    }
    let mut last = None;
    for path in BOOT_FILES {
        let line =
            reader.text(path).parse(|text| xen_line(&text).ok_or_else(|| "no line starts Xen".to_owned()));
        if line.get().is_some() {
            return line;
        }
        // The reason of a file that exists says more than that of one that does not.
        if !line.is_absent() || last.is_none() {
            last = Some(line);
        }
    }
    last.unwrap_or_else(|| Observed::unavailable(XEN_TYPE, Reason::Absent))
}

/// The arguments of the first `multiboot` line that loads Xen, or of `GRUB_CMDLINE_XEN*` in grub's defaults.
fn xen_line(text: &str) -> Option<String> {
    let mut defaults: Option<String> = None;
    for line in text.lines().map(str::trim) {
        let mut words = line.split_whitespace();
        let command = words.next().unwrap_or("");
        if command.starts_with("multiboot") || command == "xen_hypervisor" {
            let rest: Vec<&str> = words.filter(|word| !word.starts_with("--")).collect();
            if let Some((image, arguments)) = rest.split_first()
                && image.rsplit('/').next().is_some_and(|name| name.starts_with("xen"))
            {
                return Some(arguments.join(" "));
            }
        }
        if let Some((key, value)) = line.split_once('=')
            && ["GRUB_CMDLINE_XEN", "GRUB_CMDLINE_XEN_DEFAULT"].contains(&key)
        {
            let value = value.trim_matches(['"', '\'']);
            defaults = Some(defaults.map_or(value.to_owned(), |known| format!("{known} {value}")));
        }
    }
    defaults
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zenkai_host::{FakeHost, Reply};

    use super::*;

    fn signed(leaf: u32, name: &[u8; 12]) -> (Query, Reply) {
        let word = |at: usize| u64::from(u32::from_le_bytes(name[at..at + 4].try_into().unwrap()));
        (Query::Cpuid { leaf, subleaf: 0 }, Reply::Numbers(vec![u64::from(leaf), word(0), word(4), word(8)]))
    }

    fn guest(host: FakeHost, signatures: &[(u32, &[u8; 12])]) -> Observed<Kind> {
        let first = Query::Cpuid { leaf: 1, subleaf: 0 };
        let mut host = host.reply(&first, Reply::Numbers(vec![0, 0, 1 << 31, 0]));
        for (leaf, name) in signatures {
            let (query, reply) = signed(*leaf, name);
            host = host.reply(&query, reply);
        }
        observe(&Reader::new(&host))
    }

    fn dmi(vendor: &str, product: &str) -> FakeHost {
        FakeHost::new(&[
            ("/sys/class/dmi/id/sys_vendor", vendor),
            ("/sys/class/dmi/id/product_name", product),
        ])
    }

    #[test]
    fn by_signature() {
        let is = |signature: &[u8; 12]| {
            guest(dmi("QEMU", "pc"), &[(CPUID_BASE, signature)]).get().unwrap().clone()
        };
        assert_eq!(is(b"KVMKVMKVM\0\0\0"), Kind::Kvm);
        assert_eq!(is(b"TCGTCGTCGTCG"), Kind::Qemu);
        assert_eq!(is(b"VMwareVMware"), Kind::Vmware);
        assert_eq!(is(b"bhyve bhyve "), Kind::Other("bhyve".into()));
        let virtualbox = guest(dmi("innotek GmbH", "VirtualBox"), &[(CPUID_BASE, b"KVMKVMKVM\0\0\0")]);
        assert_eq!(virtualbox.get().unwrap().to_string(), "virtualbox");
    }

    #[test]
    fn hyper_v_and_its_imitators() {
        let hyper_v: &[u8; 12] = b"Microsoft Hv";
        let azure = guest(dmi("Microsoft Corporation", "Virtual Machine"), &[(CPUID_BASE, hyper_v)]);
        assert_eq!(azure.get(), Some(&Kind::HyperV));
        let xen = guest(dmi("", ""), &[(CPUID_BASE, hyper_v), (CPUID_SECOND_BASE, b"XenVMMXenVMM")]);
        assert_eq!(xen.get(), Some(&Kind::XenHvm));
        let kvm = guest(dmi("QEMU", "Standard PC"), &[(CPUID_BASE, hyper_v)]);
        assert_eq!(kvm.get(), Some(&Kind::Kvm), "the second range may be out of reach; DMI tells");
        let root = dmi("Dell Inc.", "PowerEdge R650")
            .reply(&Query::Cpuid { leaf: 0x4000_0003, subleaf: 0 }, Reply::Numbers(vec![0, 1, 0, 0]));
        assert_eq!(guest(root, &[(CPUID_BASE, hyper_v)]).get(), Some(&Kind::HyperVRoot));
    }

    #[test]
    fn firecracker_is_kvm_without_firmware() {
        let kvm: &[u8; 12] = b"KVMKVMKVM\0\0\0";
        let host = FakeHost::new(&[("/sys/firmware/acpi/tables/FACP", "FACP......FIRECKFCVMFADT")]);
        assert_eq!(guest(host, &[(CPUID_BASE, kvm)]).get(), Some(&Kind::Firecracker));
        let old = FakeHost::new(&[("/proc/cmdline", "console=ttyS0 reboot=k panic=1 pci=off\n")]);
        assert_eq!(guest(old, &[(CPUID_BASE, kvm)]).get(), Some(&Kind::Firecracker));
        let micro = FakeHost::new(&[
            ("/sys/firmware/acpi/tables/FACP", "FACP......BOCHS BXPC"),
            ("/proc/cmdline", "reboot=k panic=1\n"),
        ]);
        assert_eq!(guest(micro, &[(CPUID_BASE, kvm)]).get(), Some(&Kind::Kvm));
        assert_eq!(guest(FakeHost::new(&[]), &[(CPUID_BASE, kvm)]).get(), Some(&Kind::Kvm));
    }

    #[test]
    fn xen_in_its_modes() {
        let xen = |files: &[(&str, &str)]| {
            let host = FakeHost::new(files).file(XEN_TYPE, "xen\n");
            observe(&Reader::new(&host)).get().cloned().unwrap()
        };
        assert_eq!(xen(&[("/proc/xen/capabilities", "control_d\n")]), Kind::XenDom0);
        assert_eq!(
            xen(&[("/sys/hypervisor/properties/features", "00002fff\n"), ("/proc/xen/capabilities", "\n")]),
            Kind::XenDom0
        );
        assert_eq!(xen(&[("/sys/hypervisor/guest_type", "PV\n")]), Kind::XenPv);
        assert_eq!(xen(&[("/sys/hypervisor/guest_type", "HVM\n")]), Kind::XenHvm);
        assert_eq!(xen(&[("/sys/class/dmi/id/product_name", "HVM domU\n")]), Kind::XenHvm);
        assert!(xen(&[]).is_guest());
    }

    #[test]
    fn without_cpuid() {
        let kind = |host: FakeHost| observe(&Reader::new(&host)).get().cloned();
        let flags = |flags: &str| format!("processor : 0\nflags\t\t: fpu {flags}\n");
        assert_eq!(kind(FakeHost::new(&[("/proc/cpuinfo", &flags("aes"))])), Some(Kind::Metal));
        let guest = dmi("VMware, Inc.", "VMware7,1").file("/proc/cpuinfo", &flags("hypervisor"));
        assert_eq!(kind(guest), Some(Kind::Vmware));
        let nitro =
            dmi("Amazon EC2", "m7g.large").file("/proc/cpuinfo", "BogoMIPS : 100\nFeatures : fp asimd\n");
        assert_eq!(kind(nitro), Some(Kind::Kvm));
        let metal = dmi("Amazon EC2", "m7g.metal").file("/proc/cpuinfo", "Features : fp asimd\n");
        assert_eq!(kind(metal), Some(Kind::Metal));
        let board =
            FakeHost::new(&[("/proc/device-tree/compatible", "raspberrypi,5-model-b\0brcm,bcm2712\0")]);
        assert_eq!(kind(board), Some(Kind::Metal));
        assert_eq!(kind(FakeHost::new(&[])), None);
    }

    #[test]
    fn a_xen_line_in_grub() {
        let config = "menuentry x {\n  multiboot2 /boot/xen-4.17.gz placeholder dom0_mem=4G cpufreq=xen:performance ${x}\n module2 /vmlinuz\n}";
        assert!(xen_line(config).unwrap().contains("cpufreq=xen:performance"));
        let defaults = "GRUB_CMDLINE_XEN=\"a=1\"\nGRUB_CMDLINE_XEN_DEFAULT='b=2'\n";
        assert_eq!(xen_line(defaults).unwrap(), "a=1 b=2");
        assert_eq!(xen_line("linux /vmlinuz\n"), None);
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,200}(\n\\PC{0,50}){0,4}", bytes in proptest::collection::vec(any::<u8>(), 0..30)) {
            let _ = xen_line(&text);
            let host = FakeHost::new(&[
                ("/proc/cpuinfo", &text), (XEN_TYPE, "xen"), ("/sys/hypervisor/properties/features", &text),
                ("/proc/cmdline", &text), ("/sys/firmware/acpi/tables/FACP", &String::from_utf8_lossy(&bytes)),
            ]);
            let _ = observe(&Reader::new(&host));
        }
    }
}
