use busbound_trace::*;
fn main() {
    for p in std::env::args().skip(1) {
        let t = open(std::path::Path::new(&p), &ReadOptions::default()).unwrap();
        for e in t.events() {
            match e.kind() {
                EventKind::Kernel => println!(
                    "K,{},{},{}",
                    e.start().as_nanos(),
                    e.end().as_nanos(),
                    e.name().replace(',', ";")
                ),
                _ => {
                    if let Some(x) = e.transfer() {
                        println!(
                            "C,{},{},{},{:?}",
                            e.start().as_nanos(),
                            e.end().as_nanos(),
                            x.bytes.map_or(0, |b| b.get()),
                            x.direction
                        )
                    }
                }
            }
        }
        for l in t.link_traffic() {
            println!("L,{},{:?},{}", l.at.as_nanos(), l.direction, l.bytes.get());
        }
    }
}
