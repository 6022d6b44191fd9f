//! Asking other nodes for what differs: when, how often, and how far.
//!
//! A fabric must never have more than one question under way to a node, nor ask all nodes together more than
//! [`QUESTIONS_PER_SECOND_MAX`] questions a second.

use std::collections::VecDeque;

use super::limits::{ASKING_MAX, PAGES_MAX, PATIENCE_US, QUESTIONS_PER_SECOND_MAX};
use super::nodes::{Novelty, Pull};
use super::question::PageQuestion;
use super::{Fabric, Held, Now, Outgoing};
use crate::header::Kind;
use crate::kinds::Sender;

impl<H: Held> Fabric<H> {
    /// Goes on with what is held up, and begins to ask those that are to be asked.
    pub(super) fn ask_on(&mut self, now: Now) {
        for address in self.nodes.held_up() {
            self.ask(address, now);
        }
        while self.nodes.asking() < ASKING_MAX
            && let Some(address) = self.nodes.next_due(now.ms)
        {
            self.begin(address, now);
        }
    }

    /// Begins to ask a node for the sites that it has in common with this one by its last report: what is
    /// missing of its stream may be newer than that. One that does not differ takes one question.
    fn begin(&mut self, address: u16, now: Now) {
        let Some(node) = self.nodes.get_mut(address) else { return };
        node.is_wanted = false;
        let in_common = |digest: u64| {
            let told = node.report.as_ref().map(|report| &report.sites);
            told.is_none_or(|sites| sites.iter().any(|told| told.site == digest))
        };
        let sites = self.sites.iter().enumerate().filter(|(_, site)| in_common(site.digest));
        let sites: VecDeque<usize> = sites.map(|(place, _)| place).collect();
        let is_held = |novelty: Novelty| {
            let held = self.sites.get(novelty.site).and_then(|site| site.table.stamp(&novelty.topic));
            held >= Some(novelty.stamp)
        };
        node.is_vain = node.novelty.take().is_some_and(|novelty| !is_held(novelty));
        let (cursor, begun_ms) = (String::new(), now.ms);
        node.pull = Some(Pull { sites, cursor, number: None, pages: 0, begun_ms, novelty: None });
        self.ask(address, now);
    }

    /// Asks for the next page; if all was asked for, that is the end.
    fn ask(&mut self, address: u16, now: Now) {
        let Some(node) = self.nodes.get_mut(address) else { return };
        let Some(pull) = &mut node.pull else { return };
        let Some(site) = pull.sites.front().and_then(|site| self.sites.get(*site)) else {
            node.finish(now.ms);
            return;
        };
        if !self.questions.takes(now.ms, QUESTIONS_PER_SECOND_MAX) {
            return;
        }
        let buckets = *site.table.buckets();
        let question = PageQuestion { site: &site.name, cursor: &pull.cursor, buckets }.write();
        let to: Sender = (address, self.port);
        let begun = self.caller.begin(to, &question, PATIENCE_US, now.ms.saturating_mul(1_000));
        let Some((number, payload)) = begun else { return };
        pull.number = Some(number);
        self.counts.asked += 1;
        self.send_question(address, number, payload);
    }

    /// A page was taken: the next one, the next site, or the end.
    pub(super) fn turn_page(&mut self, address: u16, next: Option<&str>, now: Now) {
        let Some(pull) = self.nodes.get_mut(address).and_then(|node| node.pull.as_mut()) else { return };
        (pull.number, pull.pages) = (None, pull.pages + 1);
        match next {
            // Pages go forward, and end.
            Some(next) if next <= pull.cursor.as_str() || pull.pages >= PAGES_MAX => {
                self.counts.malformed += 1;
                self.fail(address, now);
                return;
            }
            Some(next) => next.clone_into(&mut pull.cursor),
            None => {
                pull.sites.pop_front();
                pull.cursor.clear();
            }
        }
        self.ask(address, now);
    }

    /// Asking a node has come to nothing for now.
    pub(super) fn fail(&mut self, address: u16, now: Now) {
        if let Some(node) = self.nodes.get_mut(address) {
            node.fail(now.ms);
        }
    }

    /// Repeats questions, and gives up those that were not answered.
    pub(super) fn conclude_questions(&mut self, now: Now) {
        let mut repeated = Vec::new();
        let ended = self.caller.due(now.ms.saturating_mul(1_000), &mut |to, number, payload| {
            repeated.push((to.0, number, payload.to_vec()));
        });
        repeated.into_iter().for_each(|(to, number, payload)| self.send_question(to, number, payload));
        for (number, _) in ended {
            self.counts.unanswered += 1;
            if let Some(address) = self.nodes.of_transaction(number) {
                self.fail(address, now);
            }
        }
    }

    fn send_question(&mut self, to: u16, number: u64, payload: Vec<u8>) {
        let message_id = Some(number as u16);
        self.outgoing.push_back(Outgoing {
            to: Some(to),
            kind: Kind::Request,
            message_id,
            priority: false,
            payload,
        });
    }
}
