//! One attribute of every CPU, told once for all CPUs that show the same.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{CpuSet, Observed, Reason};

/// CPUs that show the same value, or the same reason for having none.
#[derive(Debug, Clone, Serialize)]
pub struct Group<T> {
    /// Which.
    pub cpus: CpuSet,
    /// What they show, with the path of the first of them.
    pub value: Observed<T>,
}

/// Reads an attribute of each CPU. When the first CPU does not have it, the others are not asked: the kernel
/// gives such attributes to all CPUs or none.
pub(crate) fn per_cpu<T: Ord + Clone>(
    cpus: &CpuSet,
    mut read: impl FnMut(u32) -> Observed<T>,
) -> Observed<Vec<Group<T>>> {
    let mut groups: Vec<(Vec<u32>, Observed<T>)> = Vec::new();
    let mut places: BTreeMap<Result<T, Reason>, usize> = BTreeMap::new();
    let mut source = None;
    for cpu in cpus.iter() {
        let value = read(cpu);
        if source.is_none() {
            if let Some(reason @ (Reason::Absent | Reason::Denied | Reason::NotRecorded)) = value.reason() {
                return Observed::unavailable(value.source(), reason.clone());
            }
            source = Some(value.source().to_owned());
        }
        let shown = value.outcome().cloned().map_err(Clone::clone);
        let place = *places.entry(shown).or_insert(groups.len());
        match groups.get_mut(place) {
            Some((members, _)) => members.push(cpu),
            None => groups.push((vec![cpu], value)),
        }
    }
    let groups: Vec<_> =
        groups.into_iter().map(|(cpus, value)| Group { cpus: cpus.into_iter().collect(), value }).collect();
    match source {
        Some(source) => Observed::known(source, groups),
        None => Observed::unavailable("/sys/devices/system/cpu/online", Reason::Absent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collapsed_but_exact() {
        let cpus = CpuSet::range(0..=9);
        let groups = per_cpu(&cpus, |cpu| match cpu {
            7 => Observed::unavailable("/7", Reason::Absent),
            _ => Observed::known(format!("/{cpu}"), u64::from(cpu > 3)),
        });
        let groups = groups.get().unwrap();
        let told: Vec<_> = groups.iter().map(|group| (group.cpus.to_string(), group.value.value())).collect();
        assert_eq!(
            told,
            [("0-3".to_owned(), Some(0)), ("4-6,8-9".to_owned(), Some(1)), ("7".to_owned(), None)]
        );
        let mut asked = 0;
        let none = per_cpu(&cpus, |_| {
            asked += 1;
            Observed::<u64>::unavailable("/0", Reason::Absent)
        });
        assert!(none.is_absent());
        assert_eq!(asked, 1);
    }
}
