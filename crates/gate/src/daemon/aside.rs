//! Questions that may take long, answered on a thread of their own, one at a time.
//!
//! It must never be waited for while the gate runs. Order: [`Aside::ask`], then [`Aside::answer`] until there
//! is one. Dropping waits until the thread is done.

use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

/// A thread that answers questions `Q` by answers `A`.
pub(super) struct Aside<Q, A> {
    questions: Option<Sender<Q>>,
    answers: Receiver<A>,
    is_asked: bool,
    thread: Option<JoinHandle<()>>,
}

impl<Q: Send + 'static, A: Send + 'static> Aside<Q, A> {
    /// Answers by `work`, which is dropped on the thread when this is.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub(super) fn begin(work: impl FnMut(Q) -> A + Send + 'static) -> io::Result<Self> {
        let (questions, asked) = mpsc::channel();
        let (answer, answers) = mpsc::channel();
        let mut results = asked.into_iter().map(work);
        // The thread ends when no question can come any more, or no answer is wanted.
        let answering = move || drop(results.try_for_each(|result| answer.send(result)));
        let thread = thread::Builder::new().name("gate-aside".into()).spawn(answering)?;
        Ok(Self { questions: Some(questions), answers, is_asked: false, thread: Some(thread) })
    }

    /// Asks, unless the question before has no answer yet.
    pub(super) fn ask(&mut self, question: impl FnOnce() -> Q) {
        if let Some(questions) = self.questions.as_ref().filter(|_| !self.is_asked) {
            self.is_asked = questions.send(question()).is_ok();
        }
    }

    /// The answer, when it has come.
    pub(super) fn answer(&mut self) -> Option<A> {
        let answer = self.answers.try_recv().ok()?;
        self.is_asked = false;
        Some(answer)
    }
}

impl<Q, A> Drop for Aside<Q, A> {
    fn drop(&mut self) {
        drop(self.questions.take());
        // A panic was said where it happened.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_thinks_is_not_waited_for_and_not_asked_again() {
        let (let_go, is_let_go) = mpsc::channel::<()>();
        let mut aside = Aside::begin(move |number: u32| {
            is_let_go.recv().expect("the test lets it go");
            number * 2
        })
        .expect("a thread");
        aside.ask(|| 1);
        aside.ask(|| unreachable!("it still thinks"));
        assert_eq!(aside.answer(), None);
        let_go.send(()).expect("a thread that waits");
        let answer = loop {
            if let Some(answer) = aside.answer() {
                break answer;
            }
            thread::yield_now();
        };
        assert_eq!(answer, 2);
        aside.ask(|| 2);
        let_go.send(()).expect("a thread that waits");
    }

    #[test]
    fn what_it_works_with_is_gone_when_it_is() {
        let owned = std::sync::Arc::new(());
        let lent = owned.clone();
        let aside = Aside::begin(move |(): ()| std::sync::Arc::strong_count(&lent)).expect("a thread");
        drop(aside);
        assert_eq!(std::sync::Arc::strong_count(&owned), 1);
    }
}
