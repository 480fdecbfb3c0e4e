use busbound_trace::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let t: usize = a.get(2).and_then(|t| t.parse().ok()).unwrap_or(2);
    let s = std::time::Instant::now();
    let trace = open(std::path::Path::new(&a[1]), &ReadOptions::default().threads(t)).unwrap();
    let e = s.elapsed();
    println!(
        "{} events {:?} json {:.0} MB/s heap {} MB",
        trace.len(),
        e,
        trace.stats().json_bytes as f64 / 1e6 / e.as_secs_f64(),
        trace.heap_bytes() >> 20
    );
    let s = std::time::Instant::now();
    let n: usize = trace.streams().map(|s| s.events().len()).sum();
    println!("order {:?} {n}", s.elapsed());
    if a.len() > 3 {
        println!("{:#?}", trace.stats());
        println!("{:#?}", trace.origin());
    }
}
