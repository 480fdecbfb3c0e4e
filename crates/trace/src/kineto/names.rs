//! What do Kineto's names mean? Its categories, the names of copies and synchronizations, the arguments of PyTorch's
//! copy operators, and dtypes.

use crate::model::kind::EventKind;
use crate::model::size::Bytes;
use crate::model::sync::SyncKind;
use crate::model::transfer::{Direction, MemoryKind, Transfer};

/// The kind of an event of Meta's accelerators: all have one category, and the name says what they are.
pub(super) fn kind_of_mtia(name: &[u8]) -> EventKind {
    let has = |word: &[u8]| name.windows(word.len()).any(|part| part == word);
    match () {
        () if has(b"dma_request") => EventKind::Copy,
        () if has(b"event_wait") => EventKind::Synchronization,
        () => EventKind::Kernel,
    }
}

/// The kind of a category, or `None` if no version of Kineto is known to write it.
pub(super) fn kind_of_category(category: &[u8]) -> Option<EventKind> {
    Some(match category {
        b"cpu_op" | b"Operator" | b"hpu_op" => EventKind::Operator,
        b"user_annotation" => EventKind::Annotation,
        b"gpu_user_annotation" => EventKind::GpuAnnotation,
        b"python_function" | b"Python" => EventKind::PythonFrame,
        b"cuda_runtime"
        | b"Runtime"
        | b"hip_runtime"
        | b"xpu_runtime"
        | b"mtia_runtime"
        | b"glow_runtime"
        | b"privateuse1_runtime" => EventKind::RuntimeCall,
        b"cuda_driver" | b"xpu_driver" | b"privateuse1_driver" => EventKind::DriverCall,
        b"kernel" | b"Kernel" | b"concurrent_kernel" => EventKind::Kernel,
        b"gpu_memcpy" | b"Memcpy" => EventKind::Copy,
        b"gpu_memset" | b"Memset" => EventKind::Memset,
        b"cuda_sync" => EventKind::Synchronization,
        b"cuda_event" => EventKind::EventRecord,
        b"overhead" => EventKind::ProfilerOverhead,
        b"Trace" | b"cuda_profiler_range" => EventKind::ProfilerSpan,
        _ => return None,
    })
}

/// Parses `Memcpy HtoD (Pageable -> Device)` and similar names.
pub(super) fn transfer_of_name(name: &str, bytes: Option<Bytes>) -> Transfer {
    let (head, ends) = match name.split_once('(') {
        Some((head, rest)) => (head, rest.trim_end_matches(')')),
        None => (name, ""),
    };
    let direction = head.split_whitespace().find_map(direction_of).unwrap_or(Direction::Unknown);
    let (src, dst) = match ends.split_once("->") {
        Some((src, dst)) => (memory_kind_of(src), memory_kind_of(dst)),
        // "Memset (Device)" has only one end.
        None => (memory_kind_of(ends), memory_kind_of(ends)),
    };
    Transfer { bytes, direction, src, dst }
}

fn direction_of(word: &str) -> Option<Direction> {
    // Older ROCm versions write the operation as one word: `CopyHostToDevice`, `CopyDeviceToHost2D`.
    let word = word.strip_prefix("Copy").map_or(word, |ends| ends.strip_suffix("2D").unwrap_or(ends));
    // Intel GPUs: M is host memory, D the device.
    Some(match word {
        "HtoD" | "HtoA" | "HostToDevice" | "M2D" | "H2D" => Direction::HostToDevice,
        "DtoH" | "AtoH" | "DeviceToHost" | "D2M" | "D2H" => Direction::DeviceToHost,
        "DtoD" | "AtoA" | "AtoD" | "DtoA" | "DeviceToDevice" | "D2D" => Direction::DeviceToDevice,
        "PtoP" | "PeerToPeer" => Direction::PeerToPeer,
        "HtoH" | "HostToHost" => Direction::HostToHost,
        _ => return None,
    })
}

fn memory_kind_of(word: &str) -> MemoryKind {
    match word.trim() {
        "Pageable" => MemoryKind::Pageable,
        "Pinned" => MemoryKind::Pinned,
        "Device" | "Array" | "Device Static" => MemoryKind::Device,
        "Managed" | "Managed Static" | "Unified" => MemoryKind::Managed,
        _ => MemoryKind::Unknown,
    }
}

/// The kind of a `cuda_sync` event, by its `cuda_sync_kind` or its name.
pub(super) fn sync_of_name(name: &[u8]) -> SyncKind {
    match name {
        b"Event Sync" => SyncKind::EventSync,
        b"Stream Wait Event" => SyncKind::StreamWaitEvent,
        b"Stream Sync" => SyncKind::StreamSync,
        b"Context Sync" => SyncKind::ContextSync,
        _ => SyncKind::Unknown,
    }
}

/// The operators whose arguments are kept.
pub(super) fn is_copy_operator(name: &[u8]) -> bool {
    matches!(name, b"aten::copy_" | b"aten::to" | b"aten::_to_copy")
}

/// The position of the `non_blocking` argument of a copy operator.
///
/// `aten::to` has overloads; in each of them the flag is the first of the two trailing booleans.
pub(super) fn non_blocking_position(operator: &[u8], arguments: usize) -> Option<usize> {
    match operator {
        // copy_(self, src, non_blocking)
        b"aten::copy_" => Some(2),
        // _to_copy(self, dtype, layout, device, pin_memory, non_blocking, memory_format)
        b"aten::_to_copy" => Some(5),
        b"aten::to" => match arguments {
            // to.dtype_layout(self, dtype, layout, device, pin_memory, non_blocking, copy, format)
            8 => Some(5),
            // to.device(self, device, dtype, non_blocking, copy, format)
            6 => Some(3),
            // to.dtype(self, dtype, non_blocking, copy, format), to.other(self, other, …)
            5 => Some(2),
            // to.prim_*(self, …, non_blocking, copy)
            3 | 4 => Some(arguments - 2),
            _ => None,
        },
        _ => None,
    }
}

/// Bytes per element of a dtype, by the name that Kineto uses: C++ type names, and PyTorch's own for collectives.
pub(super) fn element_size(dtype: &[u8]) -> Option<u64> {
    Some(match dtype {
        b"bool"
        | b"char"
        | b"signed char"
        | b"unsigned char"
        | b"int8"
        | b"uint8"
        | b"Bool"
        | b"Byte"
        | b"Char"
        | b"c10::Float8_e4m3fn"
        | b"c10::Float8_e5m2"
        | b"c10::Float8_e4m3fnuz"
        | b"c10::Float8_e5m2fnuz"
        | b"c10::Float8_e8m0fnu"
        | b"Float8_e4m3fn"
        | b"Float8_e5m2"
        | b"Float8_e4m3fnuz"
        | b"Float8_e5m2fnuz"
        | b"Float8_e8m0fnu"
        | b"QInt8"
        | b"QUInt8"
        | b"c10::qint8"
        | b"c10::quint8" => 1,
        b"short" | b"short int" | b"unsigned short" | b"int16" | b"c10::Half" | b"c10::BFloat16"
        | b"Half" | b"BFloat16" | b"Short" | b"UInt16" => 2,
        b"int"
        | b"unsigned int"
        | b"float"
        | b"int32"
        | b"float32"
        | b"Float"
        | b"Int"
        | b"UInt32"
        | b"QInt32"
        | b"ComplexHalf"
        | b"c10::qint32"
        | b"c10::complex<c10::Half>" => 4,
        b"long"
        | b"long int"
        | b"long long"
        | b"unsigned long"
        | b"double"
        | b"int64"
        | b"float64"
        | b"Long"
        | b"Double"
        | b"UInt64"
        | b"ComplexFloat"
        | b"c10::complex<float>" => 8,
        b"ComplexDouble" | b"c10::complex<double>" => 16,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_and_new_category_names_mean_the_same() {
        for (old, new) in [
            ("Operator", "cpu_op"),
            ("Runtime", "cuda_runtime"),
            ("Kernel", "kernel"),
            ("Memcpy", "gpu_memcpy"),
            ("Memset", "gpu_memset"),
        ] {
            let kind = kind_of_category(old.as_bytes());
            assert!(kind.is_some());
            assert_eq!(kind, kind_of_category(new.as_bytes()));
        }
    }

    #[test]
    fn transfers_and_waits_of_mtia_are_not_kernels() {
        assert_eq!(kind_of_mtia(b"dma_request_0"), EventKind::Copy);
        assert_eq!(kind_of_mtia(b"event_wait"), EventKind::Synchronization);
        assert_eq!(kind_of_mtia(b"fc_kernel"), EventKind::Kernel);
    }

    #[test]
    fn names_give_direction_and_memory_kinds() {
        use Direction::*;
        use MemoryKind::*;
        for (name, direction, src, dst) in [
            ("Memcpy HtoD (Pageable -> Device)", HostToDevice, Pageable, Device),
            ("Memcpy HtoD (Pinned -> Device)", HostToDevice, Pinned, Device),
            ("Memcpy DtoH (Device -> Pageable)", DeviceToHost, Device, Pageable),
            ("Memcpy DtoD (Device -> Device)", DeviceToDevice, Device, Device),
            ("Memcpy PtoP (Device -> Device)", PeerToPeer, Device, Device),
            ("Memcpy HtoD (Host -> Device)", HostToDevice, MemoryKind::Unknown, Device),
            ("Memset (Device)", Direction::Unknown, Device, Device),
            ("CopyHostToDevice", HostToDevice, MemoryKind::Unknown, MemoryKind::Unknown),
            ("CopyDeviceToHost2D", DeviceToHost, MemoryKind::Unknown, MemoryKind::Unknown),
            ("CopyDeviceToDevice", DeviceToDevice, MemoryKind::Unknown, MemoryKind::Unknown),
            ("CopyBuffer", Direction::Unknown, MemoryKind::Unknown, MemoryKind::Unknown),
        ] {
            let transfer = transfer_of_name(name, None);
            assert_eq!((transfer.direction, transfer.src, transfer.dst), (direction, src, dst), "{name}");
        }
    }

    #[test]
    fn displayed_transfer_names_match_kineto() {
        use MemoryKind::*;
        for transfer in [
            Transfer::host_to_device(Pageable, 1),
            Transfer::device_to_host(Pinned, 1),
            Transfer::device_to_device(1),
            Transfer::peer_to_peer(1),
        ] {
            assert_eq!(transfer_of_name(&transfer.copy_label(), transfer.bytes), transfer);
        }
        let memset = Transfer::memset(Device, None);
        assert_eq!(transfer_of_name(&memset.memset_label(), None), memset);
    }

    #[test]
    fn displayed_synchronization_names_match_kineto() {
        use SyncKind::*;
        for kind in [EventSync, StreamWaitEvent, StreamSync, ContextSync, Unknown] {
            assert_eq!(sync_of_name(kind.label().as_bytes()), kind);
        }
    }

    #[test]
    fn dtypes_have_a_size() {
        assert_eq!(element_size(b"c10::BFloat16"), Some(2));
        assert_eq!(element_size(b"GenericList"), None);
    }
}
