/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The connection of libcosched to the scheduler: how to ask for a thread to be heard (hint.h has the messages).
 * Nothing here knows of threads and pages that there are; cosched.c does.
 */
#ifndef COSCHED_LINK_H
#define COSCHED_LINK_H

#include "hint.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/*
 * Connects to the scheduler at @path, which may take @patience_ms for an answer. Returns the socket; -1: there is
 * none, or too many wait for it already.
 */
static int link_open(const char *path, long patience_ms)
{
	struct timeval patience = { .tv_sec = patience_ms / 1000, .tv_usec = patience_ms % 1000 * 1000 };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd, error;

	if (strlen(path) >= sizeof(address.sun_path))
		return -1;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	/* To connect takes no time, or one would wait here for a scheduler that does not accept. */
	if (!connect(fd, (struct sockaddr *)&address, sizeof(address)) && !fcntl(fd, F_SETFL, 0))
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

/* Is the scheduler at @fd gone? It says nothing unless it is asked. */
static int link_is_over(int fd)
{
	char none;

	return recv(fd, &none, sizeof(none), MSG_PEEK | MSG_DONTWAIT) >= 0 || (errno != EAGAIN && errno != EINTR);
}

/* Reads an answer, and the page that it may bring into @page, or -1. Returns as link_ask(). */
static int link_answer(int fd, int *page)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct cosched_hint_answer said;
	struct iovec data = { .iov_base = &said, .iov_len = sizeof(said) };
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1,
		.msg_control = control.bytes, .msg_controllen = sizeof(control.bytes),
	};
	ssize_t length = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	struct cmsghdr *brought;

	if (length < 0)
		return -1;
	brought = CMSG_FIRSTHDR(&message);
	if (brought && brought->cmsg_level == SOL_SOCKET && brought->cmsg_type == SCM_RIGHTS &&
	    brought->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(page, CMSG_DATA(brought), sizeof(*page));
	return length == sizeof(said) && said.magic == COSCHED_HINT_MAGIC && said.error >= 0 ? said.error : -1;
}

/*
 * Asks the scheduler at @fd to hear the calling thread, whose hints are at @slot. Returns 0, an error of the
 * scheduler, or -1: there is no answer. The first that is 0 brings the page, into @page, which is the caller's then;
 * else that is -1.
 */
static int link_ask(int fd, unsigned int slot, int *page)
{
	struct cosched_hint_request request = {
		.magic = COSCHED_HINT_MAGIC,
		.thread = (unsigned int)syscall(SYS_gettid),
		.slot = slot,
	};

	*page = -1;
	if (send(fd, &request, sizeof(request), MSG_NOSIGNAL) != (ssize_t)sizeof(request))
		return -1;
	return link_answer(fd, page);
}

#endif
