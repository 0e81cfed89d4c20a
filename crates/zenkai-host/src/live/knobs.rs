//! Knobs on the live machine: one arm a kind, each in its own file below.

use std::io;

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};

use super::{LiveHost, ata, ethtool_set, file, module, mounts, service, task, xen};
use crate::{Knob, Reply, Value, derived};

/// The value of a knob that is no file.
pub(super) fn value(knob: &Knob) -> io::Result<Reply> {
    match knob {
        Knob::Attribute(_) | Knob::Sysctl(_) | Knob::File(_) => Err(Errno::INVAL.into()),
        Knob::Module(name) => module::value(name),
        Knob::Xen(name) => xen::value(name),
        Knob::Barriers(point) => mounts::value(point),
        Knob::Disk { device, parameter } => ata::value(device, *parameter),
        Knob::Directory(path) => file::directory(path),
        Knob::Ethtool { .. } | Knob::Task { .. } | Knob::Service(_) | Knob::ServiceEnabled(_) => {
            derived_text(knob)
        }
        Knob::KernelArgument(_) => Err(Errno::OPNOTSUPP.into()),
    }
}

/// What is read with the means that every host has.
fn derived_text(knob: &Knob) -> io::Result<Reply> {
    match derived::value(&LiveHost, knob)? {
        Value::Text(text) => Ok(Reply::Text(text)),
        Value::Absent => Err(Errno::NOENT.into()),
    }
}

/// Turns a knob.
pub(super) fn set(knob: &Knob, value: &Value) -> io::Result<()> {
    match knob {
        Knob::Attribute(_) | Knob::Sysctl(_) => {
            let path = knob.path().ok_or(Errno::INVAL)?;
            write_attribute(&path, value.text().ok_or(Errno::INVAL)?)
        }
        Knob::File(path) => file::set(path, value),
        Knob::Module(name) => module::set(name, value),
        Knob::Xen(name) => xen::set(name, value),
        Knob::Barriers(point) => mounts::set(point, value),
        Knob::Disk { device, parameter } => ata::set(device, *parameter, value),
        Knob::Directory(path) => file::set_directory(path, value),
        Knob::Ethtool { device, request } => ethtool_set::set(device, *request, text(value)?),
        Knob::Task { tid, start_ticks, parameter } => task::set(*tid, *start_ticks, *parameter, text(value)?),
        Knob::Service(name) => service::set(name, value),
        Knob::ServiceEnabled(name) => service::set_enabled(name, value),
        Knob::KernelArgument(_) => Err(Errno::OPNOTSUPP.into()),
    }
}

fn text(value: &Value) -> io::Result<&str> {
    value.text().ok_or_else(|| Errno::INVAL.into())
}

/// One `write` of the whole value, as sysfs demands.
fn write_attribute(path: &str, value: &str) -> io::Result<()> {
    // Never O_CREAT: a missing attribute must stay missing, and debugfs or cgroupfs must not grow files.
    let flags = OFlags::WRONLY | OFlags::TRUNC | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    // An empty value is written as a newline: a write of no bytes never reaches the attribute.
    let bytes = if value.is_empty() { "\n" } else { value };
    let written = rustix::io::write(&file, bytes.as_bytes())?;
    if written == bytes.len() { Ok(()) } else { Err(Errno::IO.into()) }
}
