//! Functions whose calls are counted: what probes must count, too.
use std::hint::black_box;

#[inline(never)]
#[no_mangle]
pub fn tripled(n: u64) -> u64 {
    black_box(n) * 3
}

#[inline(never)]
#[no_mangle]
pub fn recurse(n: u64) -> u64 {
    // No compiler can turn calls through this into a loop.
    let again = black_box(recurse as fn(u64) -> u64);
    if n < 2 { n } else { again(n - 1) + again(n - 2) }
}

fn main() {
    let tripled_sum: u64 = (0..7).map(tripled).sum();
    let sum = tripled_sum + recurse(7);
    println!("called tripled 7\ncalled recurse 41\n{}", sum);
}
