/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What freestanding C lacks: byte order, lists, memory functions, 24-bit arithmetic.
 */
#ifndef FERRY_BASE_H
#define FERRY_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ferry_hw.h"

#define memcpy	__builtin_memcpy
#define memset	__builtin_memset
#define memcmp	__builtin_memcmp
#define memmove	__builtin_memmove

#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Little-endian to host order, and back. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
static inline uint16_t le16(uint16_t v) { return v; }
static inline uint32_t le32(uint32_t v) { return v; }
static inline uint64_t le64(uint64_t v) { return v; }
#else
static inline uint16_t le16(uint16_t v) { return __builtin_bswap16(v); }
static inline uint32_t le32(uint32_t v) { return __builtin_bswap32(v); }
static inline uint64_t le64(uint64_t v) { return __builtin_bswap64(v); }
#endif

static inline uint32_t get_le32(const uint8_t *p)
{
	return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

static inline void put_le32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
	p[2] = (uint8_t)(v >> 16);
	p[3] = (uint8_t)(v >> 24);
}

/* Wire order, any alignment. */
static inline uint16_t get_be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t get_be24(const uint8_t *p)
{
	return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

static inline uint32_t get_be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | get_be24(p + 1);
}

static inline uint64_t get_be64(const uint8_t *p)
{
	return (uint64_t)get_be32(p) << 32 | get_be32(p + 4);
}

static inline void put_be16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static inline void put_be32(uint8_t *p, uint32_t v)
{
	put_be16(p, (uint16_t)(v >> 16));
	put_be16(p + 2, (uint16_t)v);
}

static inline void put_be64(uint8_t *p, uint64_t v)
{
	put_be32(p, (uint32_t)(v >> 32));
	put_be32(p + 4, (uint32_t)v);
}

/* Packet sequence numbers: 24 bits that wrap. */
#define PSN_MASK	0xffffffu

static inline uint32_t psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & PSN_MASK;
}

/* How far @a is ahead of @b, 0 to 2^24 - 1. */
static inline uint32_t psn_sub(uint32_t a, uint32_t b)
{
	return (a - b) & PSN_MASK;
}

/* The same, -2^23 to 2^23 - 1: negative when @a is older. */
static inline int32_t psn_cmp(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

/*
 * A copy of what the host may change at any time. The compiler must not read the original
 * again in place of the copy.
 */
static inline void copy_once(void *to, const void *from, size_t len)
{
	memcpy(to, from, len);
	__asm__ volatile("" : : : "memory");
}

struct list {
	struct list *next, *prev;
};

static inline void list_init(struct list *l)
{
	l->next = l;
	l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
	return l->next == l;
}

static inline void list_add_tail(struct list *head, struct list *l)
{
	l->prev = head->prev;
	l->next = head;
	head->prev->next = l;
	head->prev = l;
}

static inline void list_add_head(struct list *head, struct list *l)
{
	list_add_tail(head->next, l);
}

/* Leaves @l empty, so that it may be deleted twice. */
static inline void list_del(struct list *l)
{
	l->prev->next = l->next;
	l->next->prev = l->prev;
	list_init(l);
}

#define list_for_each(pos, head) \
	for ((pos) = (head)->next; (pos) != (head); (pos) = (pos)->next)
#define list_for_each_safe(pos, tmp, head) \
	for ((pos) = (head)->next, (tmp) = (pos)->next; (pos) != (head); \
	     (pos) = (tmp), (tmp) = (pos)->next)

#endif
