package RpTest::Log;

# The server's logs, and the rule that an error-log line which nobody announced fails the test.

use strict;
use warnings;
use RpTest::Process;

# Tab-separated name=value; %< is the client's request when there was an internal redirect.
our $ACCESS_FORMAT = join '\t', 'id=%{X-Test-Id}i', 'pid=%P', 'tid=%{tid}P', 'vhost=%v', 'status=%>s', 'us=%D',
    'bytes=%B', 'sent=%O', 'conn=%X', 'ruler_us=%<{ruler_us}n', 'ruler2_us=%<{ruler2_us}n',
    'before_bytes=%<{ruler_before_bytes}n', 'after_bytes=%<{ruler_after_bytes}n', 'request=%r';

my %bad_level = map { $_ => 1 } qw(warn error crit alert emerg);

sub lines_of {
    my ($path) = @_;
    open my $file, '<', $path or return;
    chomp(my @lines = <$file>);
    return @lines;
}

sub error_log { return lines_of("$_[0]{dir}/error.log") }
sub console   { return lines_of("$_[0]{dir}/console.log") }

# The access log's requests, oldest first, each as a hash of $ACCESS_FORMAT's names.
sub access_log {
    my ($self) = @_;
    return map { { map { /^(\w+)=(.*)/s ? ($1 => $2) : () } split /\t/ } } lines_of("$self->{dir}/access.log");
}

# The access-log entry of one response of get(); waits for it, since httpd logs after it has answered.
sub access_entry {
    my ($self, $response) = @_;
    my $entry = RpTest::Process::wait_for(
        sub { (grep { $_->{id} eq $response->{id} } access_log($self))[0] }, 5);
    return $entry || die "request $response->{id} was not logged\n";
}

sub expect_log { my $self = shift; push @{ $self->{expected} }, @_ }
sub allow_log  { my $self = shift; push @{ $self->{allowed} },  @_ }

# Something that an administrator would look at: level warn or above, a crash, or a line that no log call wrote.
sub is_bad {
    my ($line) = @_;
    return 0 if $line =~ /^\s*$/;
    return 1 if $line =~ /exit signal|AddressSanitizer|LeakSanitizer|runtime error:/;
    return $line =~ /^\[[^\]]+\] \[[\w-]*:(\w+)\]/ ? $bad_level{$1} || 0 : 1;
}

# What is wrong with the log, as sentences; empty when all is well.
sub log_faults {
    my ($self) = @_;
    my @announced = (@{ $self->{expected} }, @{ $self->{allowed} });
    my @lines     = (error_log($self), console($self));
    my @faults;
    for my $line (grep { is_bad($_) } @lines) {
        push @faults, "unannounced: $line" if !grep { $line =~ $_ } @announced;
    }
    for my $expected (@{ $self->{expected} }) {
        push @faults, "announced, but never logged: $expected" if !grep { $_ =~ $expected } @lines;
    }
    return @faults;
}

sub sanitizer_faults {
    my ($self) = @_;
    return map { ("$_:", lines_of($_)) } glob "$self->{dir}/sanitizer.*";
}

sub valgrind_faults {
    my ($self) = @_;
    my @faults;
    for my $path (glob "$self->{dir}/valgrind.*") {
        my @lines = lines_of($path);
        push @faults, "$path:", @lines if grep { /ERROR SUMMARY: [1-9]/ || /Process terminating with/ } @lines;
    }
    return @faults;
}

1;
