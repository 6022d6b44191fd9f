# Fetches from the server named in the argument with HTTP::Tiny and prints a verdict in JSON.
use strict;
use warnings;
use HTTP::Tiny;
use IO::Uncompress::Gunzip qw(gunzip);

my $url = shift;
my $client = HTTP::Tiny->new(keep_alive => 1, timeout => 15);
my %verdict;

my $page = $client->get("$url/page.html");
my $connection = $client->{handle} && fileno($client->{handle}{fh});
$verdict{html} = $page->{status} == 200 && length($page->{content}) == 7200
    && $page->{headers}{'content-type'} =~ m{^text/html};
my $head = $client->head("$url/page.html");
$verdict{head} = $head->{status} == 200 && $head->{headers}{'content-length'} == 7200 && $head->{content} eq '';
my $part = $client->get("$url/a.txt", { headers => { Range => 'bytes=7-11' } });
$verdict{range} = $part->{status} == 206 && $part->{content} eq 'world';
my $same = $client->get("$url/page.html", { headers => { 'If-None-Match' => $page->{headers}{etag} } });
$verdict{not_modified} = $same->{status} == 304 && $same->{content} eq '';
my $packed = $client->get("$url/page.html", { headers => { 'Accept-Encoding' => 'gzip' } });
my $unpacked = '';
gunzip(\$packed->{content} => \$unpacked);
$verdict{gzip} = ($packed->{headers}{'content-encoding'} // '') eq 'gzip' && $unpacked eq $page->{content};
my $later = $client->{handle} && fileno($client->{handle}{fh});
$verdict{reuse} = defined $connection && defined $later && $connection == $later;

print '{"client": "perl"', (map { qq(, "$_": ) . ($verdict{$_} ? 'true' : 'false') } sort keys %verdict), "}\n";
