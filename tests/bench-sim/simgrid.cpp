// SPDX-License-Identifier: GPL-2.0-only
// The workload of "make bench-sim" in SimGrid 3.32: an actor per process, a mailbox per actor.
//
//   simgrid NODES ITERATIONS SEED G_NS V_NS C_NS L_NS
//
// What makes it fast here, all of it tried:
// - Raw contexts, small stacks, one thread; CM02 with its lazy update and no cross traffic.
// - A Vivaldi zone, whose coordinates give each pair of hosts the same latency without any link to share: 1.2 to 1.4 times as fast as a
//   star of links with CM02. The model "Constant" looks at all messages under way at every event.
// - Sends that wait, or are waited for. A detached one goes to a list of all that are under way, and is sought there when it is
//   over: with 16,384 processes that is nearly all the time. So what a barrier's root sends to all is sent by helpers.
// - Several mailboxes for a barrier's root: to take the first message out of one costs as much as others wait there.
//
// No other time is simulated by sends that wait: all processes leave a barrier at the same moment, so whoever sends has to wait for
// the message of another that is as long under way as its own.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <simgrid/s4u.hpp>
#include <xbt/log.h>
#include <string>
#include <vector>

namespace sg4 = simgrid::s4u;

static unsigned nodes, iterations;
static uint64_t seed, g_ns, v_ns, c_ns, l_ns;

static uint64_t delivered;
static double end_s;
static char payload;
static std::vector<sg4::Mailbox*> boxes;
// Of the barriers' root: rank R sends to that with the number R modulo that of boxes.
static std::vector<sg4::Mailbox*> gathering;
static std::vector<sg4::SemaphorePtr> releases;

static uint64_t scramble(uint64_t x) {
    uint64_t z = x + 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

// xoshiro256++, seeded as crates/sim/src/random.rs does.
class Random {
    uint64_t s[4];

    static uint64_t rotate(uint64_t x, int by) { return x << by | x >> (64 - by); }

    uint64_t number() {
        uint64_t sum = rotate(s[0] + s[3], 23) + s[0], shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = rotate(s[3], 45);
        return sum;
    }

public:
    explicit Random(uint64_t stream) {
        uint64_t state = scramble(scramble(seed) ^ stream);
        for (uint64_t& word : s) {
            word = scramble(state);
            state += 0x9e3779b97f4a7c15ull;
        }
    }

    uint64_t below(uint64_t n) { return static_cast<uint64_t>((static_cast<unsigned __int128>(number()) * n) >> 64); }
};

// From whom a process reads: its neighbours on a torus (crates/sim/src/jobs.rs).
static unsigned source(unsigned rank, unsigned read) {
    static unsigned height = 0;
    if (height == 0)
        for (unsigned side = 1; side * side <= nodes; side++)
            if (nodes % side == 0) height = side;
    unsigned width = nodes / height, row = rank / width, column = rank % width;
    switch (read) {
        case 0: return (row + height - 1) % height * width + column;
        case 1: return row * width + (column + 1) % width;
        case 2: return row * width + (column + width - 1) % width;
        default: return (row + 1) % height * width + column;
    }
}

// A byte: a message of none is over before its latency is.
static void send(sg4::Mailbox* to) { to->put(&payload, 1); }

static void receive(sg4::Mailbox* at) {
    at->get<char>();
    delivered++;
}

// Sends the root's release to the processes from FIRST on, before END, whenever the root says so.
static void helper(unsigned which, unsigned first, unsigned end) {
    std::vector<sg4::CommPtr> sent;
    for (;;) {
        releases[which]->acquire();
        for (unsigned to = first; to < end; to++) sent.push_back(boxes[to]->put_async(&payload, 1));
        sg4::Comm::wait_all(sent);
        sent.clear();
    }
}

static void barrier(unsigned rank) {
    if (rank == 0) {
        auto own = gathering[0]->put_async(&payload, 1);
        for (unsigned from = 0; from < nodes; from++) receive(gathering[from % gathering.size()]);
        own->wait();
        for (auto& release : releases) release->release();
    } else {
        send(gathering[rank % gathering.size()]);
    }
    receive(boxes[rank]);
}

static void process(unsigned rank) {
    boxes[rank]->set_receiver(sg4::Actor::self());
    if (rank == 0)
        for (auto* box : gathering) box->set_receiver(sg4::Actor::self());
    Random random(1 + rank);
    for (unsigned i = 0; i < iterations; i++) {
        sg4::this_actor::sleep_for((g_ns - v_ns / 2 + random.below(v_ns + 1)) * 1e-9);
        barrier(rank);
        for (unsigned read = 0; read < 4; read++) {
            sg4::this_actor::sleep_for(c_ns * 1e-9);
            send(boxes[source(rank, read)]);
            receive(boxes[rank]);
            send(boxes[source(rank, 3 - read)]);
            receive(boxes[rank]);
        }
        sg4::this_actor::sleep_for(c_ns * 1e-9);
        barrier(rank);
    }
    end_s = std::max(end_s, sg4::Engine::get_clock());
}

static double seconds(clockid_t clock) {
    timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

static void configure() {
    const char* const settings[] = {"network/model:CM02", "network/optim:Lazy", "network/crosstraffic:0",
        "network/loopback-bw:1e15", "contexts/factory:raw", "contexts/nthreads:1", "contexts/stack-size:16",
        "contexts/guard-size:0", "surf/precision:1e-10"};
    xbt_log_control_set("xbt_cfg.thres:error");
    for (const char* setting : settings) sg4::Engine::set_config(setting);
    // A host's messages to itself take as long as all others.
    sg4::Engine::set_config("network/loopback-lat:" + std::to_string(l_ns) + "e-9");
}

static void build() {
    auto* zone = sg4::create_vivaldi_zone("cluster");
    // In ms: the heights of both ends add up to the latency.
    std::string coordinates = "0 0 " + std::to_string(l_ns * 0.5e-6);
    for (unsigned rank = 0; rank < nodes; rank++) {
        std::string name = std::to_string(rank);
        auto* host = zone->create_host(name, 1e9)->set_coordinates(coordinates);
        host->seal();
        boxes.push_back(sg4::Mailbox::by_name(name));
        sg4::Actor::create(name, host, process, rank);
    }
    zone->seal();
    unsigned share = static_cast<unsigned>(std::ceil(std::sqrt(nodes)));
    for (unsigned first = 0; first < nodes; first += share) {
        unsigned which = static_cast<unsigned>(releases.size());
        releases.push_back(sg4::Semaphore::create(0));
        gathering.push_back(sg4::Mailbox::by_name("root" + std::to_string(which)));
        auto actor = sg4::Actor::create("helper", sg4::Host::by_name("0"), helper, which, first, std::min(first + share, nodes));
        actor->daemonize();
    }
}

int main(int argc, char** argv) {
    if (argc != 8) {
        fprintf(stderr, "usage: simgrid NODES ITERATIONS SEED G_NS V_NS C_NS L_NS\n");
        return 2;
    }
    uint64_t numbers[7];
    for (int i = 0; i < 7; i++) numbers[i] = strtoull(argv[i + 1], nullptr, 10);
    nodes = static_cast<unsigned>(numbers[0]);
    iterations = static_cast<unsigned>(numbers[1]);
    seed = numbers[2], g_ns = numbers[3], v_ns = numbers[4], c_ns = numbers[5], l_ns = numbers[6];

    double began_s = seconds(CLOCK_MONOTONIC);
    int none = 1;
    sg4::Engine engine(&none, argv);
    configure();
    build();
    double setup_cpu_s = seconds(CLOCK_PROCESS_CPUTIME_ID), setup_s = seconds(CLOCK_MONOTONIC) - began_s;
    engine.run();
    printf("{\"end_ns\": %.3f, \"messages\": %lu, \"setup_cpu_s\": %f, \"setup_s\": %f}\n", end_s * 1e9, delivered,
        setup_cpu_s, setup_s);
    fflush(stdout);
    _Exit(0);  // without taking 16,384 actors apart
}
