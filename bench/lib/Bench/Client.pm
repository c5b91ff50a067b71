package Bench::Client;

# One keep-alive connection that sends a request after the other and reads each answer to its end.

use strict;
use warnings;
use IO::Socket::INET;

sub new {
    my ($class, $port) = @_;
    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Timeout => 60)
        // die "127.0.0.1:$port: $!\n";
    return bless { socket => $socket }, $class;
}

# Dies unless each answer is 200 with a Content-Length. Returns the last answer's body.
sub get {
    my ($self, $path, $count) = @_;
    my $request = "GET $path HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench/1.0\r\nAccept: */*\r\n\r\n";
    my $body;
    for (1 .. $count // 1) {
        syswrite($self->{socket}, $request) // die "write: $!\n";
        $body = $self->read_answer;
    }
    return $body;
}

sub read_answer {
    my ($self) = @_;
    my $answer = '';
    my ($head_bytes, $body_bytes);
    while (!defined $head_bytes || length $answer < $head_bytes + $body_bytes) {
        sysread($self->{socket}, $answer, 65536, length $answer) or die "the server closed the connection\n";
        next if defined $head_bytes || $answer !~ /\r\n\r\n/;
        $head_bytes = $+[0];
        ($body_bytes) = $answer =~ m{\AHTTP/1\.1 200 .*?\r\nContent-Length: (\d+)\r\n}is
            or die "unexpected answer:\n$answer";
    }
    return substr $answer, $head_bytes;
}

1;
