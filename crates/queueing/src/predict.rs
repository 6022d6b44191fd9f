//! What the model expects of a host under a load: gate, reception, queue, patience, in this order.
//!
//! It owns the predictions of the long run. It must never play events: that is [`crate::simulate`].

use crate::episode::{self, Run};
use crate::flow::{self, Flow};
use crate::host::{Fault, Host, OfferedLoad, above_zero, hold};
use crate::patience::PatientQueue;
use crate::prediction::{Prediction, Response};
use crate::tries::Tries;

impl Host {
    /// The long-run state under `load`: equations (4) and (5), then patience.
    ///
    /// A parameter out of its range is a [`Fault`].
    pub fn predict(&self, load: &OfferedLoad) -> Result<Prediction, Fault> {
        self.check()?;
        load.check()?;
        let flow = Flow::of(self, load);
        let queue = PatientQueue::new(self.service, flow.admitted_per_s, flow.mu2r_per_s, self.places);
        let throughput_per_s = queue.throughput();
        let tries = Tries::new(flow.found_share, self.retry_s, self.patience_s);
        let quantile = |share: f64| tries.quantile(&queue, share, self.patience_s);
        let in_time = quantile(0.5).zip(quantile(0.99));
        Ok(Prediction {
            goodput_per_s: throughput_per_s * tries.within(&queue, self.patience_s),
            throughput_per_s,
            admitted_per_s: flow.admitted_per_s,
            refused_per_s: flow.admitted_per_s - throughput_per_s,
            reception_share: flow.reception_share,
            mu2r_per_s: flow.mu2r_per_s,
            response_mean_s: queue.mean_response() + tries.mean_s(),
            in_time: in_time.map(|(p50_s, p99_s)| Response { p50_s, p99_s }),
        })
    }

    /// What a measurement of `load` shows that begins with an empty queue.
    ///
    /// Above capacity a long queue takes seconds to fill, and those who come meanwhile are served in time:
    /// such a run shows more goodput than the long run will. Fluid approximation above capacity,
    /// [`Host::predict`] below. Whoever is served counts, in time or not, also if the run ends before (he is
    /// served in vain). Nobody may try again in it: that is known of the long run only.
    pub fn predict_run(&self, load: &OfferedLoad, run: &Run) -> Result<Prediction, Fault> {
        above_zero("the time of sending in seconds", run.sending_s)?;
        let again = "the seconds until a client tries again, of a run that ends,";
        hold(self.retry_s <= 0.0, again, "0", self.retry_s)?;
        let steady = self.predict(load)?;
        if steady.admitted_per_s <= steady.mu2r_per_s || steady.mu2r_per_s <= 0.0 || self.places == 0 {
            return Ok(steady);
        }
        Ok(episode::overloaded(self, &steady, run))
    }

    /// Requests a second the host can serve while `flood_per_s` packets of a flood come; each request costs
    /// S1 too.
    ///
    /// Without a gate the rate at which equation (4) leaves just enough: `lambda = mu2 (1 -
    /// (lambda+flood)/mu1)`. With one the same, as far as the gate lets the flood in and after its own cost
    /// for all that come (`load.requests_per_s` of them).
    pub fn capacity_per_s(&self, load: &OfferedLoad) -> Result<f64, Fault> {
        self.check()?;
        load.check()?;
        Ok(flow::capacity(self, load))
    }
}
