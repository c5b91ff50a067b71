package RpTest::Client;

# Clients: ordinary, hand-made, slow, TLS, and running beside the test.

use strict;
use warnings;
use HTTP::Tiny;
use IO::Socket::INET;
use POSIX ();
use Socket qw(SOL_SOCKET SO_RCVBUF IPPROTO_TCP TCP_NODELAY);
use Time::HiRes qw(sleep);
use RpTest::Process;

my $last_id = 0;

sub new_id { return "$$-" . ++$last_id }

# get($path, headers => {}, method =>, content =>, vhost => NAME, keep_alive => 1, port =>)
# returns HTTP::Tiny's response with "id", the request's key in the access log.
sub get {
    my ($self, $path, %arg) = @_;
    my $id   = new_id();
    my %conf = (timeout => 60 * RpTest::Process::slowness(), max_redirect => 0, verify_SSL => 0);
    my $http = $arg{keep_alive} ? $self->{keep_alive_client} ||= HTTP::Tiny->new(%conf, keep_alive => 1)
        : HTTP::Tiny->new(%conf, keep_alive => 0);
    my $host     = $arg{vhost} || '127.0.0.1';
    my $port     = $arg{port}  || $self->{port};
    my %request  = (headers => { 'X-Test-Id' => $id, %{ $arg{headers} || {} } }, peer => '127.0.0.1');
    $request{content} = $arg{content} if defined $arg{content};
    my $response = $http->request($arg{method} || 'GET', "http://$host:$port$path", \%request);
    $response->{id} = $id;
    return $response;
}

sub connect_to {
    my ($self, %arg) = @_;
    my $socket = IO::Socket::INET->new(Proto => 'tcp');
    setsockopt $socket, SOL_SOCKET, SO_RCVBUF, pack 'i', $arg{rcvbuf} if $arg{rcvbuf};
    $socket->autoflush(1);
    my $address = pack_sockaddr($arg{port} || $self->{port});
    connect $socket, $address or die "connect: $!\n";
    return $socket;
}

sub pack_sockaddr { return Socket::pack_sockaddr_in($_[0], Socket::inet_aton('127.0.0.1')) }

# Sends bytes as they are and returns everything that comes back until the server closes, or half => 1: until it
# has answered a half-closed connection.
sub raw {
    my ($self, $bytes, %arg) = @_;
    my $socket = connect_to($self, %arg);
    local $SIG{PIPE} = 'IGNORE';
    syswrite $socket, $bytes;
    shutdown $socket, 1 if $arg{half};
    return read_all($socket);
}

sub read_all {
    my ($socket) = @_;
    my $answer = '';
    1 while sysread $socket, $answer, 65536, length $answer;
    return $answer;
}

# Reads an answer a few bytes at a time, from a small window, so that the server has to wait for the client.
# slow_read($path, bytes => 1, pause_ms => 1, slow_bytes => how many bytes to read slowly, headers => {})
sub slow_read {
    my ($self, $path, %arg) = @_;
    my $socket = connect_to($self, rcvbuf => $arg{rcvbuf} || 2048, port => $arg{port});
    my $answer = '';
    my $slow   = $arg{slow_bytes} // 200;
    print {$socket} request_head('GET', $path, { Connection => 'close', %{ $arg{headers} || {} } });
    while (length $answer < $slow) {
        sleep(($arg{pause_ms} // 1) / 1000);
        sysread($socket, $answer, $arg{bytes} || 1, length $answer) or last;
    }
    return $answer . read_all($socket);
}

# Sends a body in pieces: slow_send($path, $body, bytes => 1, pause_ms => 1, headers => {})
sub slow_send {
    my ($self, $path, $body, %arg) = @_;
    my $socket = connect_to($self, port => $arg{port});
    setsockopt $socket, IPPROTO_TCP, TCP_NODELAY, 1;
    local $SIG{PIPE} = 'IGNORE';
    my $length = length $body;
    print {$socket} request_head('POST', $path,
        { Connection => 'close', 'Content-Length' => $length, %{ $arg{headers} || {} } });
    while (length $body) {
        sleep(($arg{pause_ms} // 1) / 1000);
        print {$socket} substr $body, 0, $arg{bytes} || 1, '';
    }
    return read_all($socket);
}

sub request_head {
    my ($method, $path, $headers) = @_;
    my %all = (Host => 'localhost', 'X-Test-Id' => new_id(), %$headers);
    return "$method $path HTTP/1.1\r\n" . join('', map { "$_: $all{$_}\r\n" } sort keys %all) . "\r\n";
}

# GET over TLS with curl; returns {status, content, protocol}. http2 => 1 asks for HTTP/2.
sub tls_get {
    my ($self, $path, %arg) = @_;
    my $id      = new_id();
    my %headers = ('X-Test-Id' => $id, %{ $arg{headers} || {} });
    my @command = ('curl', '-sS', '--cacert', "$self->{dir}/tls.crt", $arg{http2} ? '--http2' : '--http1.1',
        '-w', '\n%{http_code} %{http_version}', (map { ('-H', "$_: $headers{$_}") } sort keys %headers),
        "https://localhost:$self->{tls_port}$path", '--resolve', "localhost:$self->{tls_port}:127.0.0.1");
    open my $curl, '-|', @command or die "curl: $!\n";
    my $output = do { local $/; <$curl> } // '';
    close $curl;
    $output =~ s/\n(\d+) (\S+)\z// or die "curl said nothing of use: $output\n";
    return { status => $1, protocol => $2, content => $output, id => $id };
}

# Runs a sub in a child process beside the test. Returns a handle: ->wait gives the sub's result, a string;
# ->kill ends it.
sub background {
    my ($self, $sub) = @_;
    pipe my $read, my $write or die "pipe: $!\n";
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        $SIG{$_} = 'DEFAULT' for qw(INT TERM);
        RpTest::Process::die_with_parent();
        close $read;
        my $result = eval { $sub->() } // $@;
        print {$write} $result;
        close $write;
        POSIX::_exit(0);
    }
    close $write;
    return bless { pid => $pid, read => $read }, 'RpTest::Client::Background';
}

package RpTest::Client::Background;

sub pid { return $_[0]{pid} }

sub wait {
    my ($self) = @_;
    my $result = do { local $/; readline $self->{read} };
    waitpid delete $self->{pid}, 0;
    return $result;
}

sub kill {
    my ($self) = @_;
    my $pid = delete $self->{pid} or return;
    CORE::kill('KILL', $pid);
    local $?;
    waitpid $pid, 0;
}

sub DESTROY { $_[0]->kill }

package RpTest::Client;

1;
