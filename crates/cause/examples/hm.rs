use busbound_trace::*;
fn main() {
    for p in std::env::args().skip(1) {
        let t = open(std::path::Path::new(&p), &ReadOptions::default()).unwrap();
        let h = busbound_cause::HostMemory::of(&t);
        println!("== {p}");
        for x in &h.traffic {
            println!(
                "  {:?} counted {:.1} MB copies {:.1} kernels {:.1}",
                x.direction,
                x.counted / 1e6,
                x.by_copies / 1e6,
                x.by_kernels / 1e6
            );
        }
        for k in &h.kernels {
            println!(
                "  {:?} {:.2} MB x {} in {:.3} ms link {} certain {} {}",
                k.direction,
                k.bytes.get() as f64 / 1e6,
                k.launches,
                k.total as f64 / 1e6 / k.launches as f64,
                k.is_link_bound,
                k.is_certain,
                &t.names().get(k.name)[..40.min(t.names().get(k.name).len())]
            );
        }
    }
}
