/* A network switch in user space, for kernels without netem: it connects the machines of the local cluster and can
 * delay, lose, slow down, and silently drop the traffic between them.
 *
 *   switch RULES PORT..     PORT is NAME:NAMESPACE:INTERFACE, with - for the current namespace
 *
 * It creates one TAP device per port and forwards Ethernet frames between them. RULES is a file with one rule per line,
 *
 *   FROM TO [delay MS] [jitter MS] [loss PERCENT] [rate MBIT] [cut]
 *
 * where FROM and TO are names of ports, or * for any. A rule applies to one direction; a later rule replaces an earlier
 * one. SIGHUP rereads the file; a file with an error changes nothing. Events are reported on standard output. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_PORTS = 65,
    MAX_ADDRESSES = 1024,
    MAX_FRAME = 65536,
    ADDRESS_BYTES = 6,
    HEADER_BYTES = 14,
    QUEUE_BYTES = 64 << 20, /* a full queue drops frames, as in a real switch */
    BURST = 64,             /* frames read from one port before the next port gets its turn */
};

/* The properties that a rule assigns to one direction between two ports. */
struct rule {
    uint64_t delay, jitter; /* nanoseconds */
    double loss;            /* probability */
    double rate;            /* bytes per nanosecond; 0 means no limit */
    bool cut;
};

struct frame {
    struct frame *next;
    uint64_t due;
    size_t length;
    unsigned char bytes[];
};

/* One direction between two ports: its rule, and the frames in transit. */
struct link {
    struct rule rule;
    struct frame *first, *last;
    size_t queued;       /* bytes */
    uint64_t last_due;   /* frames of a link never overtake each other */
    uint64_t busy_until; /* with a rate: when the last frame has been sent */
};

static int ports;
static int device[MAX_PORTS];
static char name[MAX_PORTS][32];
static struct link links[MAX_PORTS][MAX_PORTS];

/* The port on which an Ethernet address was last seen. */
static struct {
    unsigned char address[ADDRESS_BYTES];
    int port;
} seen[MAX_ADDRESSES];
static int seen_count;

static volatile sig_atomic_t read_again, stop;

static void on_signal(int signal)
{
    if (signal == SIGHUP)
        read_again = 1;
    else
        stop = 1;
}

static void die(const char *what)
{
    fprintf(stderr, "switch: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
}

/* A port's number, -1 for *, -2 for an unknown name. */
static int find_port(const char *text)
{
    if (text && strcmp(text, "*") == 0)
        return -1;
    for (int i = 0; text && i < ports; i++)
        if (strcmp(text, name[i]) == 0)
            return i;
    return -2;
}

static bool parse_rule(char *text, int *from, int *to, struct rule *rule)
{
    const char *blank = " \t";
    char *rest, *word;
    memset(rule, 0, sizeof *rule);
    *from = find_port(strtok_r(text, blank, &rest));
    *to = find_port(strtok_r(NULL, blank, &rest));
    if (*from == -2 || *to == -2)
        return false;
    while ((word = strtok_r(NULL, blank, &rest))) {
        if (strcmp(word, "cut") == 0) {
            rule->cut = true;
            continue;
        }
        char *end, *number = strtok_r(NULL, blank, &rest);
        double value = number ? strtod(number, &end) : -1;
        if (!(value >= 0 && value <= 1e6) || *end)
            return false;
        if (strcmp(word, "delay") == 0)
            rule->delay = value * 1e6;
        else if (strcmp(word, "jitter") == 0)
            rule->jitter = value * 1e6;
        else if (strcmp(word, "loss") == 0 && value <= 100)
            rule->loss = value / 100;
        else if (strcmp(word, "rate") == 0)
            rule->rate = value / 8000; /* Mbit/s */
        else
            return false;
    }
    return true;
}

/* Reads the rules; if there is an error, the current ones stay in force. */
static void read_rules(const char *path)
{
    static struct rule rules[MAX_PORTS][MAX_PORTS];
    memset(rules, 0, sizeof rules);
    FILE *file = fopen(path, "r");
    if (!file) {
        printf("bad rules: %s: %s\n", path, strerror(errno));
        return;
    }
    char line[512], copy[512];
    while (fgets(line, sizeof line, file)) {
        int from, to;
        struct rule rule;
        line[strcspn(line, "\n")] = 0;
        strcpy(copy, line);
        if (line[strspn(line, " \t")] == 0)
            continue;
        if (!parse_rule(copy, &from, &to, &rule)) {
            printf("bad rules: '%s'\n", line);
            fclose(file);
            return;
        }
        for (int a = 0; a < ports; a++)
            for (int b = 0; b < ports; b++)
                if ((from < 0 || from == a) && (to < 0 || to == b))
                    rules[a][b] = rule;
    }
    fclose(file);
    for (int a = 0; a < ports; a++)
        for (int b = 0; b < ports; b++)
            links[a][b].rule = rules[a][b];
    printf("rules read\n");
}

static void deliver(int port, const unsigned char *bytes, size_t length)
{
    /* a full or closed device loses the frame, as a cable would */
    if (write(device[port], bytes, length) < 0 && errno != EIO && errno != EAGAIN && errno != ENOBUFS)
        fprintf(stderr, "switch: port %s: %s\n", name[port], strerror(errno));
}

static void send_frame(int from, int to, const unsigned char *bytes, size_t length, uint64_t time)
{
    struct link *link = &links[from][to];
    const struct rule *rule = &link->rule;
    if (rule->cut || drand48() < rule->loss)
        return;
    if (!rule->delay && !rule->jitter && rule->rate == 0 && !link->first) {
        deliver(to, bytes, length);
        return;
    }
    if (link->queued + length > QUEUE_BYTES)
        return;

    uint64_t due = time;
    if (rule->rate > 0) {
        due = (link->busy_until > due ? link->busy_until : due) + length / rule->rate;
        link->busy_until = due;
    }
    due += rule->delay + drand48() * rule->jitter;
    if (due < link->last_due)
        due = link->last_due;
    link->last_due = due;

    struct frame *frame = malloc(sizeof *frame + length);
    if (!frame)
        return;
    *frame = (struct frame){.due = due, .length = length};
    memcpy(frame->bytes, bytes, length);
    if (link->first)
        link->last->next = frame;
    else
        link->first = frame;
    link->last = frame;
    link->queued += length;
}

/* Delivers the frames that are due, and returns when the next one will be (UINT64_MAX: none in transit). */
static uint64_t deliver_due(uint64_t time)
{
    uint64_t next = UINT64_MAX;
    for (int a = 0; a < ports; a++)
        for (int b = 0; b < ports; b++) {
            struct link *link = &links[a][b];
            while (link->first && link->first->due <= time) {
                struct frame *frame = link->first;
                link->first = frame->next;
                link->queued -= frame->length;
                if (!link->rule.cut)
                    deliver(b, frame->bytes, frame->length);
                free(frame);
            }
            if (link->first && link->first->due < next)
                next = link->first->due;
        }
    return next;
}

/* The index of an address in the table, or seen_count. */
static int find_address(const unsigned char *address)
{
    int i = 0;
    while (i < seen_count && memcmp(seen[i].address, address, ADDRESS_BYTES) != 0)
        i++;
    return i;
}

/* Records the port of the sender; sends to the receiver's port, or to all ports if it is unknown. */
static void forward(int from, const unsigned char *bytes, size_t length, uint64_t time)
{
    const unsigned char *receiver = bytes, *sender = bytes + ADDRESS_BYTES;
    int i = find_address(sender);
    if (i == seen_count && seen_count < MAX_ADDRESSES)
        memcpy(seen[seen_count++].address, sender, ADDRESS_BYTES);
    if (i < seen_count)
        seen[i].port = from;

    bool group = receiver[0] & 1; /* broadcast and multicast */
    i = group ? seen_count : find_address(receiver);
    for (int to = 0; to < ports; to++)
        if (to != from && (i == seen_count || seen[i].port == to))
            send_frame(from, to, bytes, length, time);
}

/* Creates a port's TAP device in its namespace; it disappears with this process. */
static void open_port(const char *text, int home)
{
    char namespace[32], path[64];
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    if (ports == MAX_PORTS || sscanf(text, "%31[^:]:%31[^:]:%15s", name[ports], namespace, request.ifr_name) != 3) {
        fprintf(stderr, "switch: bad port '%s', or more than %d\n", text, MAX_PORTS);
        exit(2);
    }
    if (strcmp(namespace, "-") != 0) {
        snprintf(path, sizeof path, "/run/netns/%s", namespace);
        int other = open(path, O_RDONLY | O_CLOEXEC);
        if (other < 0 || setns(other, CLONE_NEWNET) != 0)
            die(path);
        close(other);
    }
    device[ports] = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (device[ports] < 0)
        die("/dev/net/tun");
    if (ioctl(device[ports], TUNSETIFF, &request) != 0)
        die(request.ifr_name);
    if (setns(home, CLONE_NEWNET) != 0)
        die("the namespace we came from");
    ports++;
}

int main(int count, char **arguments)
{
    if (count < 3) {
        fprintf(stderr, "usage: switch RULES NAME:NAMESPACE:INTERFACE..\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (home < 0)
        die("/proc/self/ns/net");
    for (int i = 2; i < count; i++)
        open_port(arguments[i], home);

    /* Signals arrive only during the wait, so that none is missed between checking the flags and waiting. */
    sigset_t ours, before;
    sigemptyset(&ours);
    struct sigaction action = {.sa_handler = on_signal};
    const int signals[] = {SIGHUP, SIGINT, SIGTERM};
    for (int i = 0; i < 3; i++) {
        sigaddset(&ours, signals[i]);
        sigaction(signals[i], &action, NULL);
    }
    sigprocmask(SIG_BLOCK, &ours, &before);
    read_rules(arguments[1]);
    printf("ready\n");

    static unsigned char bytes[MAX_FRAME];
    struct pollfd polled[MAX_PORTS];
    for (int i = 0; i < ports; i++)
        polled[i] = (struct pollfd){.fd = device[i], .events = POLLIN};
    while (!stop) {
        uint64_t time = now(), next = deliver_due(time);
        uint64_t wait = next - time;
        struct timespec timeout = {.tv_sec = wait / 1000000000, .tv_nsec = wait % 1000000000};
        int ready = ppoll(polled, ports, next == UINT64_MAX ? NULL : &timeout, &before);
        if (read_again) {
            read_again = 0;
            read_rules(arguments[1]);
        }
        if (ready <= 0)
            continue;
        time = now();
        for (int from = 0; from < ports; from++)
            for (int i = 0; i < BURST && polled[from].revents & POLLIN; i++) {
                ssize_t length = read(device[from], bytes, sizeof bytes);
                if (length < HEADER_BYTES)
                    break;
                forward(from, bytes, length, time);
            }
    }
    return 0;
}
