//! More come than an application can serve.

use std::time::Duration;

use staunch_tests::truth::{Plan, Queue, Work};

use crate::world::{Client, ENGINES, World, application};

/// Clients at once, each of which asks again as soon as it is answered.
const CLIENTS: usize = 40;
/// Requests that each of them makes.
const REQUESTS: usize = 50;

#[test]
fn a_crowd_is_answered_or_refused_and_the_application_works_for_those_who_wait() {
    for io in ENGINES {
        let plan = Plan {
            service_time: Duration::from_millis(5),
            workers: 2,
            work: Work::Sleep,
            queue: Queue::Connection,
            ..Plan::default()
        };
        let (truth, address) = application(plan);
        let mut world = World::proxy(io, &[address], &[]);
        let server = world.server.address();
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                std::thread::spawn(move || {
                    let mut client = Client::to(server);
                    let mut counts = (0, 0);
                    for _ in 0..REQUESTS {
                        client.send(b"GET /ok HTTP/1.1\r\nHost: a\r\n\r\n");
                        let response = client.read(false);
                        match response.status {
                            200 => counts.0 += 1,
                            503 => {
                                counts.1 += 1;
                                let after = response.value("retry-after").expect("Retry-After");
                                assert!(after.parse::<u32>().is_ok_and(|after| after >= 1), "{after}");
                            }
                            status => panic!("{status}"),
                        }
                    }
                    counts
                })
            })
            .collect();
        let counts = clients.into_iter().map(|client| client.join().expect("a client"));
        let (answered, refused) = counts.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        assert_eq!(answered + refused, CLIENTS * REQUESTS, "{io}");
        assert_eq!(truth.counts().requests_of("ok"), answered as u64, "{io}: nothing was done for nobody");
        let told = world.metric("staunch_proxy_refused_total", "");
        assert_eq!(told as usize, refused, "{io}");
        world.await_metric("staunch_proxy_in_work", "", |count| count == 0.0);
        world.await_metric("staunch_proxy_waiting", "", |count| count == 0.0);
    }
}
