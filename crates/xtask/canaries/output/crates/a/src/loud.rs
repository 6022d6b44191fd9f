//! Prints.

pub fn shout() {
    println!("one");
    eprintln!("two");
    std::print!("three");
    let _ = writeln!(String::new(), "four");
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_test_may() {
        println!("five");
    }
}
