package RpTest::Fifo;

# A slow reader of a named pipe, for logs that make their writer wait.
#
#     my $fifo = RpTest::Fifo->new(pause_ms => 20);          # reads one piece of at most 512 bytes every 20 ms
#     ... conf => "CustomLog \"@{[$fifo->path]}\" common"
#     $fifo->stop_reading; ... $fifo->resume;
#     my @lines = $fifo->lines;                              # what was read up to now

use strict;
use warnings;
use Fcntl qw(O_RDWR);
use File::Temp ();
use POSIX ();
use Time::HiRes qw(sleep);
use RpTest::Process;

use constant F_SETPIPE_SZ => 1031;

# new(pause_ms => 0, bytes => 512 a read, pipe_bytes => 4096 that fit into the pipe)
sub new {
    my ($class, %arg) = @_;
    my $dir  = File::Temp->newdir('rpfifo-XXXXXX', TMPDIR => 1);
    my $self = bless { dir => $dir, path => "$dir/fifo", owner => $$ }, $class;
    POSIX::mkfifo($self->{path}, 0666) or die "mkfifo: $!\n";
    chmod 0755, "$dir";
    chmod 0666, $self->{path};
    if (my ($uid, $gid) = RpTest::Process::server_user()) { chown $uid, $gid, $self->{path} }
    # Read and write: it never sees an end of file, and httpd's open does not wait for a reader.
    sysopen my $pipe, $self->{path}, O_RDWR or die "$self->{path}: $!\n";
    fcntl $pipe, F_SETPIPE_SZ, $arg{pipe_bytes} || 4096;
    $self->{pid} = fork // die "fork: $!\n";
    read_slowly($pipe, "$dir/out", %arg) if !$self->{pid};
    return $self;
}

sub read_slowly {
    my ($pipe, $path, %arg) = @_;
    $SIG{$_} = 'DEFAULT' for qw(INT TERM);
    RpTest::Process::die_with_parent();
    open my $out, '>', $path or POSIX::_exit(1);
    while (sysread $pipe, my $bytes, $arg{bytes} || 512) {
        syswrite $out, $bytes;
        sleep $arg{pause_ms} / 1000 if $arg{pause_ms};
    }
    POSIX::_exit(0);
}

sub path         { return $_[0]{path} }
sub stop_reading { kill 'STOP', $_[0]{pid} }
sub resume       { kill 'CONT', $_[0]{pid} }

sub lines {
    my ($self) = @_;
    open my $out, '<', "$self->{dir}/out" or return;
    chomp(my @lines = <$out>);
    return @lines;
}

sub close {
    my ($self) = @_;
    return if $$ != $self->{owner};
    my $pid = delete $self->{pid} or return;
    local $?;
    kill 'KILL', $pid;
    waitpid $pid, 0;
}

sub DESTROY { $_[0]->close }

1;
