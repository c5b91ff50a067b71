/**
 * @file repeat.h
 * @brief Stamps a macro many times: RP_REPEAT_512(M) is M(0x000) M(0x001) … M(0x1ff).
 *
 * C has no closures: a function that must know which slot called it is stamped once for each slot.
 */
#ifndef RP_BASE_REPEAT_H
#define RP_BASE_REPEAT_H

#define RP_REPEAT_DIGIT(M, p)                                                                                          \
    M(p##0) M(p##1) M(p##2) M(p##3) M(p##4) M(p##5) M(p##6) M(p##7)                                                    \
    M(p##8) M(p##9) M(p##a) M(p##b) M(p##c) M(p##d) M(p##e) M(p##f)

#define RP_REPEAT_64_FROM(M, p)                                                                                        \
    RP_REPEAT_DIGIT(M, p##0) RP_REPEAT_DIGIT(M, p##1) RP_REPEAT_DIGIT(M, p##2) RP_REPEAT_DIGIT(M, p##3)

#define RP_REPEAT_256_FROM(M, p)                                                                                       \
    RP_REPEAT_64_FROM(M, p)                                                                                            \
    RP_REPEAT_DIGIT(M, p##4) RP_REPEAT_DIGIT(M, p##5) RP_REPEAT_DIGIT(M, p##6) RP_REPEAT_DIGIT(M, p##7)                \
    RP_REPEAT_DIGIT(M, p##8) RP_REPEAT_DIGIT(M, p##9) RP_REPEAT_DIGIT(M, p##a) RP_REPEAT_DIGIT(M, p##b)                \
    RP_REPEAT_DIGIT(M, p##c) RP_REPEAT_DIGIT(M, p##d) RP_REPEAT_DIGIT(M, p##e) RP_REPEAT_DIGIT(M, p##f)

#define RP_REPEAT_16(M) RP_REPEAT_DIGIT(M, 0x00)
#define RP_REPEAT_64(M) RP_REPEAT_64_FROM(M, 0x0)
#define RP_REPEAT_256(M) RP_REPEAT_256_FROM(M, 0x0)
#define RP_REPEAT_512(M) RP_REPEAT_256_FROM(M, 0x0) RP_REPEAT_256_FROM(M, 0x1)

#endif
