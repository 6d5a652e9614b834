/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * small-datagrams receive PORT
 * small-datagrams send ADDRESS PORT SECONDS: how many datagrams of 64 bytes a second come across.
 *
 * The sender has at most WINDOW of them on their way, and the receiver says of every BATCH of them that it has come. So
 * the slower node sets the pace, and it is never flooded: where one is, it spends its time on what it drops later, and
 * a little more work for each makes it lose nearly all. What is lost is sent again after 0.1 s of silence.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { SIZE = 64, WINDOW = 128, BATCH = 32 };

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

static void send_on(int fd, const void *bytes, size_t length)
{
	if (send(fd, bytes, length, 0) < 0)
		die("send");
}

/* Forever, for one sender after the other: how many of his have come. He begins with an empty one. */
static void receive(int fd)
{
	char bytes[SIZE];
	uint64_t come = 0;

	for (;;) {
		struct sockaddr_in from;
		socklen_t size = sizeof(from);
		ssize_t length = recvfrom(fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, &size);

		if (length < 0)
			die("recvfrom");
		come = length ? come + 1 : 0;
		if ((!length || come % BATCH == 0) &&
		    sendto(fd, &come, sizeof(come), 0, (struct sockaddr *)&from, size) < 0)
			die("sendto");
	}
}

/* How many have come by now, for all that is known, is in @come; waits for news if @waits. False if there are none. */
static int hear(int fd, uint64_t *come, int waits)
{
	uint64_t told;

	if (recv(fd, &told, sizeof(told), waits ? 0 : MSG_DONTWAIT) != sizeof(told))
		return 0;
	*come = told;
	return 1;
}

static double rate(int fd, double seconds)
{
	const struct timeval silence = { .tv_usec = 100000 };
	uint64_t sent = 0, come = 1;
	char bytes[SIZE] = {};
	double start;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof(silence));
	do
		send_on(fd, bytes, 0);
	while (!hear(fd, &come, 1) || come);
	for (start = now_s(); now_s() - start < seconds;) {
		for (; sent < come + WINDOW; sent++)
			send_on(fd, bytes, sizeof(bytes));
		if (!hear(fd, &come, 1))
			sent = come;
		while (hear(fd, &come, 0))
			;
	}
	return come / (now_s() - start);
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (argc == 3 && !strcmp(argv[1], "receive")) {
		address.sin_port = htons(atoi(argv[2]));
		if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)))
			die("bind");
		receive(fd);
	}
	if (argc != 5 || strcmp(argv[1], "send") || inet_pton(AF_INET, argv[2], &address.sin_addr) != 1) {
		fputs("usage: small-datagrams receive PORT, or send ADDRESS PORT SECONDS\n", stderr);
		return 2;
	}
	address.sin_port = htons(atoi(argv[3]));
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)))
		die("connect");
	printf("%.0f\n", rate(fd, atof(argv[4])));
	return 0;
}
