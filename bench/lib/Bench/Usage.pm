package Bench::Usage;

# What a server's processes have used: processor time and memory, from /proc.

use strict;
use warnings;
use RpTest::Process;

# User and system time of the server's processes in ns. The ticks of /proc/PID/stat are too coarse; schedstat has ns.
sub cpu_ns {
    my ($server) = @_;
    my $sum = 0;
    for my $file (map { glob "/proc/$_/task/*/schedstat" } $server->pid, $server->children) {
        open my $in, '<', $file or next;
        $sum += (split / /, <$in> // '0')[0];
    }
    return $sum;
}

# {shared => , private => } in bytes, of the whole server. Shared is writable shared memory that was touched, each page
# once (Pss); private is what processes have for themselves.
sub memory {
    my ($server) = @_;
    my %bytes = (shared => 0, private => 0);
    for my $pid ($server->pid, $server->children) {
        open my $in, '<', "/proc/$pid/smaps" or next;
        my $is_shared = 0;
        while (my $line = <$in>) {
            $is_shared = $1 eq 'rw-s' if $line =~ /^[0-9a-f]+-[0-9a-f]+ (\S+)/;
            $bytes{shared} += 1024 * $1 if $is_shared && $line =~ /^Pss:\s+(\d+)/;
            $bytes{private} += 1024 * $1 if !$is_shared && $line =~ /^Private_(?:Dirty|Clean):\s+(\d+)/;
        }
    }
    return \%bytes;
}

1;
