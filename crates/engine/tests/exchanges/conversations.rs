//! The table of conversations, and how it is held on the simulated network: in one piece, byte by byte, and
//! cut in two at every byte.

use staunch_netio::simulated::{Faults, Step};

use crate::reading::answers;
use crate::world::play;

/// What is sent, and every answer that comes.
pub(crate) struct Conversation {
    pub(crate) sent: &'static str,
    pub(crate) answers: &'static [&'static str],
    /// What it shows needs deadlines, and so a clock that can be turned.
    pub(crate) waits: bool,
}

const fn talk(sent: &'static str, answers: &'static [&'static str]) -> Conversation {
    Conversation { sent, answers, waits: false }
}

const fn wait(sent: &'static str, answers: &'static [&'static str]) -> Conversation {
    Conversation { sent, answers, waits: true }
}

pub(crate) const TABLE: &[Conversation] = &[
    // Bodies that come back as they come.
    talk("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", &["200 chunked hello"]),
    talk("PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx", &["200 chunked x"]),
    talk("PATCH /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nxy", &["200 chunked xy"]),
    talk("DELETE /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nxy", &["200 chunked xy"]),
    talk("POST /echo HTTP/1.1\r\nHost: a\r\n\r\n", &["200 chunked "]),
    talk("GET /echo HTTP/1.1\r\nHost: a\r\n\r\n", &["200 chunked "]),
    talk("GET /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", &["200 chunked abc"]),
    talk("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", &["200 chunked "]),
    talk(
        "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        &["200 chunked hello"],
    ),
    talk(
        "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2;a=\"b\\\"\"\r\nhe\r\n\
         3\r\nllo\r\n0\r\nT: x\r\n\r\n",
        &["200 chunked hello"],
    ),
    talk("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", &["200 chunked "]),
    talk(
        "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0000A\r\n0123456789\r\n\
         0\r\n\r\n",
        &["200 chunked 0123456789"],
    ),
    talk("POST /echo?length=5 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", &["200 length hello"]),
    talk(
        "POST /echo?length=5 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n\
         0\r\n\r\n",
        &["200 length hello"],
    ),
    // More than the announced length is cut to it.
    talk("POST /echo?length=3 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", &["200 length hel"]),
    talk("POST /echo?length=0 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", &["200 length "]),
    // Less than the announced length cannot be told but by the end of the connection.
    talk("POST /echo?length=9 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", &[]),
    // HTTP/1.0 knows no chunks.
    talk("POST /echo HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello", &["200 close until-close hello"]),
    talk(
        "POST /echo HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello",
        &["200 close until-close hello"],
    ),
    talk(
        "POST /echo?length=5 HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello",
        &["200 length hello"],
    ),
    // The connection goes on.
    talk(
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        &["200 chunked hello", "200 length plain\n"],
    ),
    talk(
        "GET / HTTP/1.1\r\nHost: a\r\n\r\nPOST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
        &["200 length plain\n", "200 chunked hello"],
    ),
    talk(
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n1POST /echo HTTP/1.1\r\nHost: a\r\n\
         Transfer-Encoding: chunked\r\n\r\n1\r\n2\r\n0\r\n\r\nPOST /echo?length=1 HTTP/1.1\r\n\
          Host: a\r\nContent-Length: 1\r\n\r\n3",
        &["200 chunked 1", "200 chunked 2", "200 length 3"],
    ),
    talk(
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        &["200 chunked hi", "200 length plain\n"],
    ),
    talk(
        "POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi",
        &["200 close chunked hi"],
    ),
    talk(
        "POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\n\
         hiGET / HTTP/1.1\r\n",
        &["200 close chunked hi"],
    ),
    // A peer that waits for 100 gets it.
    talk(
        "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi",
        &["100", "200 chunked hi"],
    ),
    talk(
        "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n\
         2\r\nhi\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        &["100", "200 chunked hi", "200 length plain\n"],
    ),
    talk(
        "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n",
        &["200 chunked "],
    ),
    talk(
        "POST /nothing HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n",
        &["404 close length "],
    ),
    talk(
        "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: x\r\nContent-Length: 2\r\n\r\n",
        &["417 close length 417 Expectation Failed: the only expectation known is 100-continue\n"],
    ),
    // Bodies that are read before there is an answer.
    talk("POST /read HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", &["200 length hello"]),
    talk("GET /read HTTP/1.1\r\nHost: a\r\n\r\n", &["200 length "]),
    talk("GET /read?at=0&then=echo HTTP/1.1\r\nHost: a\r\n\r\n", &["200 chunked "]),
    talk("POST /read HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello", &["200 close length hello"]),
    talk(
        "POST /read HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n\
         0\r\nT: x\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        &["200 length hello", "200 length plain\n"],
    ),
    talk(
        "POST /read?at=2 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\n\
         Host: a\r\n\r\n",
        &["200 length he", "200 length plain\n"],
    ),
    talk(
        "POST /read?at=2&then=echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\n\
         Host: a\r\n\r\n",
        &["200 chunked hello", "200 length plain\n"],
    ),
    talk(
        "POST /read?at=2&then=echo&length=5 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
        &["200 length hello"],
    ),
    talk(
        "POST /read?at=2&then=wait HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\n\
         Host: a\r\n\r\n",
        &["200 length he", "200 length plain\n"],
    ),
    talk(
        "POST /read?step=2 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\n\
         Host: a\r\n\r\n",
        &["200 length hello", "200 length plain\n"],
    ),
    // An early answer is the last one if more of the body would come than is thrown away.
    talk(
        "POST /read?at=2 HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\nhello",
        &["200 close length he"],
    ),
    // Interim answers, which HTTP/1.0 does not know.
    talk("POST /read?hints=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi", &["103", "200 length hi"]),
    talk(
        "POST /read?hints=1 HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi",
        &["103", "100", "200 length hi"],
    ),
    talk("POST /read?hints=1 HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi", &["200 close length hi"]),
    // Trailers of an answer, where its body goes in chunks.
    talk(
        "POST /echo?trailers=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhiGET / HTTP/1.1\r\n\
         Host: a\r\n\r\n",
        &["200 chunked hi [T: x]", "200 length plain\n"],
    ),
    talk(
        "POST /echo?trailers=1&length=2 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi",
        &["200 length hi"],
    ),
    talk("POST /echo?trailers=1 HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi", &["200 close until-close hi"]),
    // Bodies that are collected.
    talk("POST /collect HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", &["200 length 5 hello"]),
    talk("POST /collect HTTP/1.1\r\nHost: a\r\n\r\n", &["200 length 0 "]),
    talk("GET /collect HTTP/1.1\r\nHost: a\r\n\r\n", &["200 length 0 "]),
    talk(
        "POST /collect HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n\
         0\r\n\r\n",
        &["200 length 5 hello"],
    ),
    talk("POST /collect HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello", &["200 close length 5 hello"]),
    talk(
        "POST /collect HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi",
        &["100", "200 length 2 hi"],
    ),
    talk(
        "POST /collect?limit=5 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\n\
         Host: a\r\n\r\n",
        &["200 length 5 hello", "200 length plain\n"],
    ),
    talk(
        "POST /collect HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nxPOST /collect HTTP/1.1\r\n\
         Host: a\r\nContent-Length: 1\r\n\r\ny",
        &["200 length 1 x", "200 length 1 y"],
    ),
    // Above the limit: told at once where the length is, else at the byte that is too many.
    talk(
        "POST /collect?limit=4 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\n\
         Host: a\r\n\r\n",
        &[
            "413 length 413 Content Too Large: the body is longer than may be sent here\n",
            "200 length plain\n",
        ],
    ),
    talk(
        "POST /collect?limit=4 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n\
         2\r\nlo\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        &[
            "413 length 413 Content Too Large: the body is longer than may be sent here\n",
            "200 length plain\n",
        ],
    ),
    talk(
        "POST /collect?limit=0 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
        &["413 length 413 Content Too Large: the body is longer than may be sent here\n"],
    ),
    talk(
        "POST /collect?limit=4 HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
        &["413 close length 413 Content Too Large: the body is longer than may be sent here\n"],
    ),
    talk(
        "POST /collect?limit=4 HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\nhello",
        &["413 close length 413 Content Too Large: the body is longer than may be sent here\n"],
    ),
    // Bodies that nobody wants are thrown away as ever.
    talk(
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        &["200 length plain\n", "200 length plain\n"],
    ),
    talk(
        "POST /drip?every=10ms&count=2 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n\
         helloGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        &["200 chunked drop 1\ndrop 2\n", "200 length plain\n"],
    ),
    // Broken bodies: 400 while nothing was answered, else the end.
    talk(
        "POST /collect HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx",
        &["400 close length 400 Bad Request: the body is not in the chunked coding it is said to have\n"],
    ),
    talk(
        "POST /collect HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
        &["400 close length 400 Bad Request: the body is not in the chunked coding it is said to have\n"],
    ),
    talk(
        "POST /collect HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n",
        &["400 close length 400 Bad Request: both Content-Length and Transfer-Encoding\n"],
    ),
    talk(
        "POST /read HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
        &["400 close length 400 Bad Request: the body is not in the chunked coding it is said to have\n"],
    ),
    // Pieces over time.
    talk(
        "GET /drip?every=10ms&count=3 HTTP/1.1\r\nHost: a\r\n\r\n",
        &["200 chunked drop 1\ndrop 2\ndrop 3\n"],
    ),
    talk("GET /drip?every=10ms&count=0 HTTP/1.1\r\nHost: a\r\n\r\n", &["200 chunked "]),
    talk("GET /drip?every=10ms&count=1 HTTP/1.0\r\n\r\n", &["200 close until-close drop 1\n"]),
    talk(
        "GET /drip?every=10ms&count=2 HTTP/1.1\r\nHost: a\r\n\r\n\
         GET /drip?every=20ms&count=1 HTTP/1.1\r\nHost: a\r\n\r\n",
        &["200 chunked drop 1\ndrop 2\n", "200 chunked drop 1\n"],
    ),
    talk(
        "GET /drip?every=10ms&count=1 HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n\
         GET /nothing HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        &["200 chunked drop 1\n", "200 length plain\n", "404 close length "],
    ),
    // As much as is taken.
    talk("GET /flood?bytes=0 HTTP/1.1\r\nHost: a\r\n\r\n", &["200 chunked "]),
    talk("GET /flood?bytes=3 HTTP/1.1\r\nHost: a\r\n\r\n", &["200 chunked fff"]),
    talk(
        "GET /flood?bytes=3 HTTP/1.1\r\nHost: a\r\n\r\nGET /flood?bytes=2 HTTP/1.1\r\nHost: a\r\n\r\n",
        &["200 chunked fff", "200 chunked ff"],
    ),
    // An answer that is given up never looks whole.
    talk("GET /cut?bytes=3 HTTP/1.1\r\nHost: a\r\n\r\n", &[]),
    talk(
        "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /cut?bytes=3 HTTP/1.1\r\nHost: a\r\n\r\n",
        &["200 length plain\n"],
    ),
    talk("GET /cut?bytes=0 HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", &[]),
    // What comes behind a bad request is never an exchange.
    talk(
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
        &["400 close length 400 Bad Request: Content-Length is not a number of bytes\n"],
    ),
    talk(
        "POST /echo HTTP/1.1\r\nContent-Length: 1\r\n\r\nx",
        &["400 close length 400 Bad Request: no Host in HTTP/1.1\n"],
    ),
    // Another protocol on the same connection.
    talk(
        "GET /raw HTTP/1.1\r\nHost: a\r\nUpgrade: raw\r\n\r\n\x01GET / HTTP/1.1\r\n",
        &["101 \x01GET / HTTP/1.1\r\n"],
    ),
    talk(
        "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /raw HTTP/1.1\r\nHost: a\r\nUpgrade: raw\r\n\r\nab",
        &["200 length plain\n", "101 ab"],
    ),
    // What an upstream sends back.
    talk("POST /upstream HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", &["200 chunked hello"]),
    talk("PUT /upstream HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx", &["200 chunked x"]),
    talk("GET /upstream HTTP/1.1\r\nHost: a\r\n\r\n", &["200 chunked "]),
    talk("POST /upstream HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", &["200 chunked "]),
    talk(
        "POST /upstream HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n\
         0\r\nT: x\r\n\r\n",
        &["200 chunked hello"],
    ),
    talk(
        "POST /upstream?length=5 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
        &["200 length hello"],
    ),
    talk(
        "POST /upstream?length=3 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
        &["200 length hel"],
    ),
    talk("POST /upstream?length=9 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", &[]),
    talk("POST /upstream HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello", &["200 close until-close hello"]),
    talk(
        "POST /upstream?length=5 HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello",
        &["200 length hello"],
    ),
    talk(
        "POST /upstream HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi",
        &["100", "200 chunked hi"],
    ),
    talk(
        "POST /upstream HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi",
        &["200 close chunked hi"],
    ),
    talk(
        "POST /upstream HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n1POST /upstream HTTP/1.1\r\n\
         Host: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n2\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        &["200 chunked 1", "200 chunked 2", "200 length plain\n"],
    ),
    talk(
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n1POST /upstream HTTP/1.1\r\n\
         Host: a\r\nContent-Length: 1\r\n\r\n2POST /collect HTTP/1.1\r\nHost: a\r\n\
         Content-Length: 1\r\n\r\n3",
        &["200 chunked 1", "200 chunked 2", "200 length 1 3"],
    ),
    talk(
        "POST /upstream?to=9999 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhiGET / HTTP/1.1\r\n\
         Host: a\r\n\r\n",
        &["404 length ", "200 length plain\n"],
    ),
    talk(
        "POST /upstream?to=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhiGET / HTTP/1.1\r\n\
         Host: a\r\n\r\n",
        &["502 length ", "200 length plain\n"],
    ),
    talk(
        "POST /upstream?to=1 HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n",
        &["502 close length "],
    ),
    // Bodies that stop coming.
    wait(
        "POST /collect HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhello",
        &["408 close length 408 Request Timeout: the body of the request took too long\n"],
    ),
    wait(
        "POST /collect HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n",
        &["100", "408 close length 408 Request Timeout: the body of the request took too long\n"],
    ),
    wait(
        "POST /read HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhello",
        &["408 close length 408 Request Timeout: the body of the request took too long\n"],
    ),
    wait("POST /read?at=5 HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhello", &["200 length hello"]),
    wait("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhello", &[]),
    wait("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", &[]),
    wait("POST /echo HTTP/1.0\r\nContent-Length: 9\r\n\r\nhello", &["200 close until-close hello"]),
    wait("POST /upstream HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhello", &[]),
];

/// Sends the pieces one after another, and then waits for the end, or half-closes before.
fn script(pieces: &[&[u8]], half_closes: bool) -> Vec<Step> {
    let mut steps = Vec::new();
    for piece in pieces {
        steps.extend([Step::Send(piece.to_vec()), Step::Wait(1)]);
    }
    if half_closes {
        steps.push(Step::HalfClose);
    }
    steps.push(Step::UntilReceived(usize::MAX));
    steps
}

fn check(conversation: &Conversation, received: &[u8], how: &str) {
    let (heard, rest) = answers(received, false);
    let sent = conversation.sent;
    assert_eq!(heard, conversation.answers, "{how}: {sent:?}\n{}", String::from_utf8_lossy(received));
    let is_cut = conversation.waits
        || sent.contains("length=9")
        || sent.contains("/cut")
        || sent.contains("/upstream") && conversation.answers.is_empty();
    assert!(rest.is_empty() || is_cut, "{how}: {sent:?}: more came: {:?}", String::from_utf8_lossy(rest));
}

#[test]
fn there_are_enough_conversations() {
    assert!(TABLE.len() >= 60, "{}", TABLE.len());
}

#[test]
fn canary_a_wrong_answer_is_found() {
    let past = play(1, Faults::NONE, vec![script(&[TABLE[0].sent.as_bytes()], true)]);
    let received = &past.transcripts[0].received;
    check(&TABLE[0], received, "as it is");
    for answers in [&["200 chunked hellp"][..], &[], &["200 chunked hello", "200 length "]] {
        let wrong = Conversation { sent: TABLE[0].sent, answers, waits: false };
        assert!(std::panic::catch_unwind(|| check(&wrong, received, "wrong")).is_err(), "{answers:?}");
    }
}

#[test]
fn every_conversation_at_every_split() {
    for conversation in TABLE {
        let bytes = conversation.sent.as_bytes();
        for half_closes in [false, true] {
            // What is no HTTP any more ends only when the peer does.
            if half_closes && conversation.waits || !half_closes && conversation.sent.contains("/raw") {
                continue;
            }
            let mut scripts = vec![script(&[bytes], half_closes)];
            scripts.push(script(&bytes.chunks(1).collect::<Vec<_>>(), half_closes));
            for cut in 1..bytes.len() {
                scripts.push(script(&[&bytes[..cut], &bytes[cut..]], half_closes));
            }
            let past = play(1, Faults::NONE, scripts);
            for (index, transcript) in past.transcripts.iter().enumerate() {
                check(conversation, &transcript.received, &format!("piece {index}, {half_closes}"));
            }
        }
    }
}

#[test]
fn every_conversation_on_an_unkind_network() {
    for (index, conversation) in TABLE.iter().enumerate() {
        for seed in 0..40 {
            let past = play(
                seed * 1000 + index as u64,
                Faults::GENTLE,
                vec![script(&[conversation.sent.as_bytes()], conversation.sent.contains("/raw"))],
            );
            check(conversation, &past.transcripts[0].received, &format!("seed {seed}"));
        }
    }
}

#[test]
fn heads_of_answers_that_would_go_on() {
    let targets = [
        "/echo",
        "/drip?every=10ms&count=2",
        "/flood?bytes=5",
        "/echo?length=4",
        "/echo?trailers=1",
        "/read?at=0&then=echo",
        "/upstream",
        "/upstream?length=4",
    ];
    for target in targets {
        let sent = format!("HEAD {target} HTTP/1.1\r\nHost: a\r\n\r\n").repeat(2);
        let past = play(1, Faults::NONE, vec![script(&[sent.as_bytes()], true)]);
        let (heard, rest) = answers(&past.transcripts[0].received, true);
        let framing = if target.contains("length") { "length" } else { "chunked" };
        assert_eq!((heard, rest.len()), (vec![format!("200 {framing} "); 2], 0), "{target}");
    }
}
