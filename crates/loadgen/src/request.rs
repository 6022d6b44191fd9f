//! A request, as it is asked for and as it is sent.
//!
//! It owns the bytes of a request (RFC 9112, section 3). It must never send them. A field that is asked for
//! stands in the place of one that would be made: Host, Connection, Content-Length, Transfer-Encoding.

use std::sync::Arc;

use rand::Rng;
use staunch_netio::{Outgoing, Slice};

use crate::Fault;
use crate::template::{Template, Values};
use crate::url::check_target;

/// A request that is asked for. Target, values of fields, and body may hold variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestPlan {
    /// The method, as it is sent.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Names and values, in order.
    pub fields: Vec<(String, String)>,
    /// The body, empty for none.
    pub body: Vec<u8>,
    /// Braces in the body mean nothing but themselves.
    pub plain_body: bool,
}

impl RequestPlan {
    /// GET without a body or fields.
    pub fn get(target: impl Into<String>) -> Self {
        Self {
            method: "GET".to_owned(),
            target: target.into(),
            fields: Vec::new(),
            body: Vec::new(),
            plain_body: false,
        }
    }
}

/// A request ready to be sent any number of times.
#[derive(Debug, Clone)]
pub(crate) struct RenderedRequest {
    pub(crate) asked_by_head: bool,
    content: Content,
}

#[derive(Debug, Clone)]
enum Content {
    /// Bytes that do not change.
    Static(Arc<[u8]>),
    /// Everything, with the length of the body in it.
    Whole(Template),
    /// A body whose length is known when it is made. The head ends behind `Content-Length: `.
    Parts { head: Template, body: Template },
}

/// A request of at least so many bytes is sent from where it stands. A smaller one is copied: one piece of
/// memory is sent by the cheaper call, and what is pipelined goes out in one.
const SHARED_BYTES_MIN: usize = 16 * 1024;

impl RenderedRequest {
    /// Makes what can be made beforehand.
    ///
    /// # Errors
    /// What in the plan cannot be sent, and its place.
    pub(crate) fn new(plan: &RequestPlan, authority: &str, keep_alive: bool) -> Result<Self, Fault> {
        check_method(&plan.method)?;
        let mut head = request_line(plan)?;
        if !plan.has_field("host") {
            head.push_literal(format!("Host: {authority}\r\n").as_bytes());
        }
        push_fields(&mut head, &plan.fields)?;
        if !keep_alive && !plan.has_field("connection") {
            head.push_literal(b"Connection: close\r\n");
        }
        let body = if plan.plain_body {
            Template::literal(&plan.body)
        } else {
            Template::parse(&plan.body, "the body")?
        };
        Ok(Self { asked_by_head: plan.method == "HEAD", content: join(head, body, plan.makes_length()) })
    }

    /// Length in bytes, when it is the same each time.
    pub(crate) fn length_bytes(&self) -> Option<usize> {
        match &self.content {
            Content::Static(bytes) => Some(bytes.len()),
            Content::Whole(_) | Content::Parts { .. } => None,
        }
    }

    /// Appends the request to `outgoing`. `scratch` is memory for a while.
    #[inline]
    pub(crate) fn write(
        &self,
        values: &Values,
        random: &mut impl Rng,
        scratch: &mut Vec<u8>,
        outgoing: &mut Outgoing,
    ) {
        match &self.content {
            Content::Static(bytes) if bytes.len() < SHARED_BYTES_MIN => {
                outgoing.bytes().extend_from_slice(bytes);
            }
            Content::Static(bytes) => {
                outgoing.push_shared(Slice { bytes: Arc::clone(bytes), start: 0, end: bytes.len() });
            }
            Content::Whole(template) => template.render(values, random, outgoing.bytes()),
            Content::Parts { head, body } => {
                scratch.clear();
                head.render(values, random, outgoing.bytes());
                body.render(values, random, scratch);
                let out = outgoing.bytes();
                out.extend_from_slice(itoa::Buffer::new().format(scratch.len()).as_bytes());
                out.extend_from_slice(b"\r\n\r\n");
                out.extend_from_slice(scratch);
            }
        }
    }
}

fn join(mut head: Template, body: Template, makes_length: bool) -> Content {
    if makes_length {
        head.push_literal(b"Content-Length: ");
        match body.as_static() {
            Some(body) => head.push_literal(format!("{}\r\n\r\n", body.len()).as_bytes()),
            None => return Content::Parts { head, body },
        }
    } else {
        head.push_literal(b"\r\n");
    }
    head.push(body);
    match head.as_static() {
        Some(bytes) => Content::Static(bytes.into()),
        None => Content::Whole(head),
    }
}

impl RequestPlan {
    fn has_field(&self, name: &str) -> bool {
        self.fields.iter().any(|(given, _)| given.eq_ignore_ascii_case(name))
    }

    /// RFC 9110, section 8.6: also without a body, for methods that have one.
    fn makes_length(&self) -> bool {
        let expected = !self.body.is_empty() || matches!(self.method.as_str(), "POST" | "PUT" | "PATCH");
        expected && !self.has_field("content-length") && !self.has_field("transfer-encoding")
    }
}

fn is_token(text: &str) -> bool {
    let marks = b"!#$%&'*+-.^_`|~";
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || marks.contains(&byte))
}

fn check_method(method: &str) -> Result<(), Fault> {
    if !is_token(method) {
        return Err(Fault::new(format!("`{}` is not a method", method.escape_debug())));
    }
    if method == "CONNECT" {
        return Err(Fault::new("CONNECT asks for a tunnel, which cannot be loaded"));
    }
    Ok(())
}

fn request_line(plan: &RequestPlan) -> Result<Template, Fault> {
    let target = Template::parse(plan.target.as_bytes(), "the target")?;
    let options_of_all = plan.target == "*" && plan.method == "OPTIONS";
    if !plan.target.starts_with('/') && !options_of_all {
        let shown = plan.target.escape_debug();
        return Err(Fault::new(format!("the target `{shown}` does not begin with `/`")));
    }
    check_target(&target)?;
    let mut line = Template::literal(format!("{} ", plan.method).as_bytes());
    line.push(target);
    line.push_literal(b" HTTP/1.1\r\n");
    Ok(line)
}

fn push_fields(head: &mut Template, fields: &[(String, String)]) -> Result<(), Fault> {
    for (name, value) in fields {
        if !is_token(name) {
            return Err(Fault::new(format!("`{}` is not the name of a field", name.escape_debug())));
        }
        let value = Template::parse(value.as_bytes(), &format!("the field {name}"))?;
        let control = |byte: &u8| byte.is_ascii_control() && *byte != b'\t';
        if value.texts().any(|text| text.iter().any(control)) {
            return Err(Fault::new(format!(
                "the field {name} has a line break or another control character"
            )));
        }
        head.push_literal(format!("{name}: ").as_bytes());
        head.push(value);
        head.push_literal(b"\r\n");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
