//! Allocations of a wave: some for the group's batch, none for a reader. It must never depend on the
//! allocator.

use std::sync::Arc;

use staunch_live::{
    Audience, Bytes, Coding, Delivery, Epoch, Form, Grants, Hub, HubSettings, Interest, Joined, Marks,
    Publication, Reader, Request, Shape, Start, TopicName, Transport, Value, View, Waves,
};

struct House {
    readers: Vec<Reader>,
    delivered: u64,
}

impl Audience for House {
    fn reader(&mut self, slot: u32) -> &mut Reader {
        &mut self.readers[slot as usize]
    }

    fn deliver(&mut self, _slot: u32, slices: &[Bytes]) -> Delivery {
        self.delivered += slices.len() as u64;
        Delivery::Sent
    }
}

/// Allocations of one wave to so many readers.
fn allocations(readers: u32) -> u64 {
    let (mut hub, mut view, mut waves) =
        (Hub::new(HubSettings::default(), Epoch(1)), View::new(Epoch(1), 10), Waves::new());
    let mut house = House { readers: Vec::new(), delivered: 0 };
    let interest = Arc::new(Interest::read(["a", "b.*"], Grants::default(), 10).unwrap());
    let form = Form::new(Shape::Enveloped, Transport::Chunked, Coding::Gzip);
    for slot in 0..readers {
        let Joined::Reader(reader, _) =
            view.join(slot, (&interest, 0), form, Start::Now, Marks::default(), 0)
        else {
            panic!("a reader of nothing joins at once");
        };
        house.readers.push(reader);
    }
    for request in view.take_requests() {
        hub.request(0, request);
    }
    let mut counted = 0;
    for round in 0..2 {
        let value = Value::of_bytes(b"a value");
        hub.publish(Publication::new(TopicName::new("a").unwrap(), value), 0).unwrap();
        view.read(&hub.take_letter().unwrap());
        assert!(!view.take_requests().contains(&Request::Hold(form)) || round == 0);
        let measured = allocation_counter::measure(|| while waves.go(&mut view, &mut house, 256) {});
        counted = measured.count_total;
    }
    assert_eq!(house.delivered, 2 * u64::from(readers));
    counted
}

#[test]
fn a_delivery_allocates_nothing() {
    let few = allocations(10);
    assert!(few > 0, "the counter counts: a batch is a vector");
    assert!(few < 20, "{few}");
    assert_eq!(allocations(5000), few);
}
