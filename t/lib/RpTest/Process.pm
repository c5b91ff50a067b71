package RpTest::Process;

# Starts a program as the server's user, and looks at processes.

use strict;
use warnings;
use POSIX ();
use Time::HiRes qw(sleep time);

use constant POLL_S => 0.004;

# Under valgrind and the sanitizers everything takes longer; only limits are stretched, nothing sleeps longer.
sub slowness { return $ENV{RP_VALGRIND} ? 20 : $ENV{RP_LD_PRELOAD} ? 4 : 1 }

# Polls until the sub returns something true, and returns that; false after $seconds.
sub wait_for {
    my ($sub, $seconds) = @_;
    my $end = time + ($seconds // 5) * slowness();
    while (1) {
        my $value = $sub->();
        return $value if $value;
        return        if time > $end;
        sleep POLL_S;
    }
}

# The user that a server started by root runs as: (uid, gid); an empty list when we are not root.
sub server_user {
    return if $> != 0;
    my $name = $ENV{RP_USER} || 'www-data';
    my ($uid, $gid) = (getpwnam $name)[2, 3];
    die "no user \"$name\"; set RP_USER\n" if !defined $uid;
    return ($uid, $gid);
}

sub drop_privileges {
    my ($uid, $gid) = server_user() or return;
    $) = "$gid $gid";    # setgroups and setegid
    POSIX::setgid($gid) or die "setgid: $!\n";
    POSIX::setuid($uid) or die "setuid: $!\n";
}

# A server must not outlive a test that is killed: ask the kernel for SIGTERM when the parent dies.
sub die_with_parent {
    my %prctl   = (x86_64 => 157, aarch64 => 167);
    my $number  = $prctl{ (POSIX::uname())[4] } or return;
    my $pr_set_pdeathsig = 1;
    syscall $number, $pr_set_pdeathsig, POSIX::SIGTERM(), 0, 0, 0;
}

# spawn(command => [...], console => FILE, env => {...}); returns the pid.
sub spawn {
    my (%arg) = @_;
    my $pid = fork // die "fork: $!\n";
    return $pid if $pid;
    eval {
        open STDIN,  '<',   '/dev/null'   or die "/dev/null: $!\n";
        open STDOUT, '>>',  $arg{console} or die "$arg{console}: $!\n";
        open STDERR, '>&',  \*STDOUT      or die "stderr: $!\n";
        $SIG{$_} = 'DEFAULT' for qw(INT TERM PIPE HUP);
        # httpd signals its whole process group when it stops or restarts; with FOREGROUND it makes none of its own.
        POSIX::setsid() > 0 or die "setsid: $!\n";
        drop_privileges();
        die_with_parent();
        @ENV{ keys %{ $arg{env} || {} } } = values %{ $arg{env} || {} };
        exec { $arg{command}[0] } @{ $arg{command} } or die "$arg{command}[0]: $!\n";
    };
    print STDERR $@;
    POSIX::_exit(127);
}

# Reaps the child when it has ended; true when it has (or is none of ours).
sub ended { return waitpid($_[0], POSIX::WNOHANG()) != 0 }

sub alive { return kill(0, $_[0]) && state($_[0]) ne 'Z' }

sub stat_fields {
    my ($pid) = @_;
    open my $stat, '<', "/proc/$pid/stat" or return;
    my $line = <$stat> // return;
    return split / /, $line =~ s/^.*\) //r;    # state ppid pgrp session ...
}

sub state { return (stat_fields($_[0]))[0] // 'Z' }

sub children_of {
    my ($parent) = @_;
    opendir my $proc, '/proc' or die "/proc: $!\n";
    return sort { $a <=> $b } grep { /^\d+$/ && ((stat_fields($_))[1] // 0) == $parent } readdir $proc;
}

sub group_members {
    my ($group) = @_;
    opendir my $proc, '/proc' or die "/proc: $!\n";
    return grep { my @f = /^\d+$/ ? stat_fields($_) : (); @f && $f[2] == $group && $f[0] ne 'Z' } readdir $proc;
}

sub has_socket {
    my ($pid, $inode) = @_;
    opendir my $fds, "/proc/$pid/fd" or return 0;
    return 0 + grep { (readlink("/proc/$pid/fd/$_") // '') eq "socket:[$inode]" } readdir $fds;
}

# The inode of the socket that listens on a port of 127.0.0.1.
sub listener_inode {
    my ($port) = @_;
    my $local = sprintf '0100007F:%04X', $port;
    open my $tcp, '<', '/proc/net/tcp' or die "/proc/net/tcp: $!\n";
    while (<$tcp>) {
        my @field = split;
        return $field[9] if $field[1] eq $local && $field[3] eq '0A';
    }
    return;
}

# Connections of a port of 127.0.0.1 that a process still holds while one side has already closed them.
my %closing = map { $_ => 1 } qw(04 05 08 09 0B);    # FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT, LAST_ACK, CLOSING

sub closing_count {
    my ($port) = @_;
    my $local = sprintf '0100007F:%04X', $port;
    open my $tcp, '<', '/proc/net/tcp' or die "/proc/net/tcp: $!\n";
    return scalar grep { my @f = split; $f[1] eq $local && $closing{ $f[3] } && $f[9] } <$tcp>;
}

# Stops a server: SIGTERM, and after a while SIGKILL for it and for what is left of its process group.
# Returns true when SIGTERM was enough.
sub stop {
    my ($pid, $signal) = @_;
    my $leads = ((stat_fields($pid))[2] // 0) == $pid;
    kill $signal || 'TERM', $pid;
    my $clean = wait_for(sub { ended($pid) }, 15);
    if (!$clean) {
        kill 'KILL', $pid;
        waitpid $pid, 0;
    }
    my $empty = !$leads || wait_for(sub { !group_members($pid) }, 3);
    kill 'KILL', -$pid if !$empty;
    return $clean && $empty;
}

1;
