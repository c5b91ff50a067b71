package Bench::Part::Others;

# What other ways to see inside a request cost: mod_log_debug at every hook, and bpftrace at httpd's hook functions.

use strict;
use warnings;
use File::Copy qw(copy);
use File::Path qw(make_path);
use Bench::Build;
use Bench::Load;
use Bench::Part;
use Bench::Stats;
use POSIX ();

# Each runs one function of every module that asked for the hook.
my @probed = qw(ap_run_post_read_request ap_run_translate_name ap_run_map_to_storage ap_run_header_parser
    ap_run_access_checker ap_run_type_checker ap_run_fixups ap_run_insert_filter ap_run_handler ap_run_log_transaction);

my $one_child = "StartServers 1\nMinSpareServers 1\nMaxSpareServers 1\nMaxRequestWorkers 1\n";

sub rows {
    my (%arg) = @_;
    my $rounds = $arg{quick} ? 6 : 20;
    return Bench::Load::on_client_side(sub { (log_debug_row($rounds), bpftrace_row($rounds)) });
}

sub log_debug_row {
    my ($count) = @_;
    my $what = 'mod_log_debug, a message at every hook: CPU, to bare';
    return Bench::Part::skipped($what, 'mod_log_debug is not installed')
        if !-e RpTest::Build::libexecdir() . '/mod_log_debug.so';
    my $servers = Bench::Load::start(variants => ['bare']);
    $servers->{debug} = Bench::Server->start(variant => 'bare', before => Bench::Load::server_side(),
        modules => ['log_debug'], conf => "LogLevel log_debug:debug\nLogMessage \"here\" hook=all\n");
    return ratio_row($what, $servers, 'debug', $count);
}

sub bpftrace_row {
    my ($count) = @_;
    my $what = 'bpftrace, enter and leave of ' . @probed . ' hooks: CPU, to bare';
    my $why  = bpftrace_refuses();
    return Bench::Part::skipped($what, $why) if $why;
    my @one_child = (mpm => 'prefork', mpm_conf => $one_child);
    my $servers   = Bench::Load::start(variants => ['bare'], @one_child);
    my $httpd     = copy_of_httpd();
    $servers->{probed} = Bench::Server->start(variant => 'bare', httpd => $httpd, @one_child,
        before => Bench::Load::server_side());
    my $probe = attach($httpd);
    my $row   = ratio_row($what, $servers, 'probed', $count);
    my $said  = detach($probe);
    return $row if $said =~ /^\@t\[\w+\]: \d+/m;
    return Bench::Part::skipped($what, $said =~ /^(?:ERROR: )(\S.*)$/m ? $1 : 'no probe was hit');
}

# Why the kernel does not let us, in its own words; undef when it does.
sub bpftrace_refuses {
    return 'bpftrace is not installed' if !grep { -x "$_/bpftrace" } split /:/, $ENV{PATH};
    my $said = `timeout 20 bpftrace -e 'BEGIN { printf("works\\n"); exit(); }' 2>&1`;
    return if $said =~ /^works$/m;
    return ($said =~ /^(?:ERROR: )?(\S.*)$/m) ? $1 : 'bpftrace says nothing';
}

# Probes sit in a program's file and stop every process that runs it: the probed server runs a copy.
sub copy_of_httpd {
    my $copy = "$Bench::Build::OUT/httpd";
    make_path($Bench::Build::OUT);
    copy(RpTest::Build::httpd(), $copy) or die "$copy: $!\n";
    chmod 0755, $copy;
    return $copy;
}

# Times are kept as a profiler would: a start for each thread, a sum for each function.
sub attach {
    my ($httpd) = @_;
    my $program = join ' ', map { "uprobe:$httpd:$_ { \@s[tid] = nsecs; } "
        . "uretprobe:$httpd:$_ { \@t[\"$_\"] = sum(nsecs - \@s[tid]); }" } @probed;
    my $log = "$Bench::Build::OUT/bpftrace.log";
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        open STDOUT, '>', $log;
        open STDERR, '>&', \*STDOUT;
        exec 'bpftrace', '-e', $program or POSIX::_exit(127);
    }
    my $probe = { pid => $pid, log => $log };
    RpTest::Process::wait_for(sub { said($probe) =~ /^Attaching/m || RpTest::Process::ended($pid) }, 20);
    sleep 2;    # it says so before it has attached
    return $probe;
}

sub said {
    my ($probe) = @_;
    open my $in, '<', $probe->{log} or return '';
    local $/;
    return <$in> // '';
}

# Ends bpftrace, which then prints its sums; returns all that it said.
sub detach {
    my ($probe) = @_;
    kill 'INT', $probe->{pid};
    waitpid $probe->{pid}, 0;
    return said($probe);
}

sub ratio_row {
    my ($what, $servers, $variant, $count) = @_;
    my $rounds = Bench::Load::rounds($servers, $count, path => '/small.txt', requests => 1000, concurrency => 1);
    Bench::Load::stop($servers);
    return Bench::Part::fact($what, Bench::Stats::text('%.3f', Bench::Load::ratios($rounds, $variant, 'cpu_ns')));
}

1;
