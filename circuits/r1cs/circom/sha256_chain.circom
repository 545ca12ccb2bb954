pragma circom 2.0.0;

// SHA-256 applied again and again: from 32 secret bytes x to SHA-256(...SHA-256(x)).
// Words are 32 bits each, least significant bit first. Nothing here depends on the field, as long as
// it has more than 2^128 elements.

// The bits of a number below 2^n.
template Bits(n) {
    signal input in;
    signal output out[n];
    var sum = 0;
    for (var i = 0; i < n; i++) {
        out[i] <-- (in >> i) & 1;
        out[i] * (out[i] - 1) === 0;
        sum += out[i] * (1 << i);
    }
    sum === in;
}

// The sum of words and a constant, modulo 2^32; `carry` bits hold what is beyond.
template Sum(words, carry, constant) {
    signal input in[words][32];
    signal output out[32];
    var sum = constant;
    for (var w = 0; w < words; w++) {
        for (var i = 0; i < 32; i++) {
            sum += in[w][i] * (1 << i);
        }
    }
    component bits = Bits(32 + carry);
    bits.in <== sum;
    for (var i = 0; i < 32; i++) {
        out[i] <== bits.out[i];
    }
}

template Xor3() {
    signal input a;
    signal input b;
    signal input c;
    signal output out;
    signal both;
    both <== b * c;
    out <== a * (1 - 2 * b - 2 * c + 4 * both) + b + c - 2 * both;
}

// The word rotated to the right by r1, by r2, and by r3 or, if `shift`, shifted by r3; their sum
// modulo 2.
template Sigma(r1, r2, r3, shift) {
    signal input in[32];
    signal output out[32];
    component xor[32];
    for (var i = 0; i < 32; i++) {
        xor[i] = Xor3();
        xor[i].a <== in[(i + r1) % 32];
        xor[i].b <== in[(i + r2) % 32];
        if (shift == 1 && i + r3 >= 32) {
            xor[i].c <== 0;
        } else {
            xor[i].c <== in[(i + r3) % 32];
        }
        out[i] <== xor[i].out;
    }
}

template Choose() {
    signal input e[32];
    signal input f[32];
    signal input g[32];
    signal output out[32];
    for (var i = 0; i < 32; i++) {
        out[i] <== e[i] * (f[i] - g[i]) + g[i];
    }
}

template Majority() {
    signal input a[32];
    signal input b[32];
    signal input c[32];
    signal output out[32];
    signal both[32];
    for (var i = 0; i < 32; i++) {
        both[i] <== b[i] * c[i];
        out[i] <== a[i] * (b[i] + c[i] - 2 * both[i]) + both[i];
    }
}

function start(i) {
    var h[8] = [
        0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19
    ];
    return h[i];
}

function round_constant(i) {
    var k[64] = [
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
        0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
        0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
        0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
        0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
        0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
        0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2
    ];
    return k[i];
}

// One round: the eight words of the state, and the word of the schedule.
template Round(i) {
    signal input in[8][32];
    signal input w[32];
    signal output out[8][32];
    component sigma1 = Sigma(6, 11, 25, 0);
    component choose = Choose();
    component sigma0 = Sigma(2, 13, 22, 0);
    component majority = Majority();
    // d + T1 and T1 + T2, where T1 = h + Sigma1(e) + Ch(e, f, g) + K + W, T2 = Sigma0(a) + Maj(a, b, c)
    component e = Sum(5, 3, round_constant(i));
    component a = Sum(6, 3, round_constant(i));
    for (var b = 0; b < 32; b++) {
        sigma1.in[b] <== in[4][b];
        choose.e[b] <== in[4][b];
        choose.f[b] <== in[5][b];
        choose.g[b] <== in[6][b];
        sigma0.in[b] <== in[0][b];
        majority.a[b] <== in[0][b];
        majority.b[b] <== in[1][b];
        majority.c[b] <== in[2][b];
    }
    for (var b = 0; b < 32; b++) {
        e.in[0][b] <== in[7][b];
        e.in[1][b] <== sigma1.out[b];
        e.in[2][b] <== choose.out[b];
        e.in[3][b] <== w[b];
        e.in[4][b] <== in[3][b];
        a.in[0][b] <== in[7][b];
        a.in[1][b] <== sigma1.out[b];
        a.in[2][b] <== choose.out[b];
        a.in[3][b] <== w[b];
        a.in[4][b] <== sigma0.out[b];
        a.in[5][b] <== majority.out[b];
    }
    for (var b = 0; b < 32; b++) {
        out[0][b] <== a.out[b];
        out[4][b] <== e.out[b];
        for (var j = 1; j < 4; j++) {
            out[j][b] <== in[j - 1][b];
            out[j + 4][b] <== in[j + 3][b];
        }
    }
}

// SHA-256 of 32 bytes, which are one block with its padding.
template Sha256Of32Bytes() {
    signal input in[8][32];
    signal output out[8][32];
    signal w[64][32];
    for (var j = 0; j < 8; j++) {
        for (var b = 0; b < 32; b++) {
            w[j][b] <== in[j][b];
            // A one, zeros, and the length: 256 bits.
            w[j + 8][b] <== (j == 0 && b == 31) || (j == 7 && b == 8) ? 1 : 0;
        }
    }
    component s0[48];
    component s1[48];
    component word[48];
    for (var t = 16; t < 64; t++) {
        s0[t - 16] = Sigma(7, 18, 3, 1);
        s1[t - 16] = Sigma(17, 19, 10, 1);
        word[t - 16] = Sum(4, 2, 0);
        for (var b = 0; b < 32; b++) {
            s0[t - 16].in[b] <== w[t - 15][b];
            s1[t - 16].in[b] <== w[t - 2][b];
        }
        for (var b = 0; b < 32; b++) {
            word[t - 16].in[0][b] <== w[t - 16][b];
            word[t - 16].in[1][b] <== s0[t - 16].out[b];
            word[t - 16].in[2][b] <== w[t - 7][b];
            word[t - 16].in[3][b] <== s1[t - 16].out[b];
        }
        for (var b = 0; b < 32; b++) {
            w[t][b] <== word[t - 16].out[b];
        }
    }
    component round[64];
    for (var t = 0; t < 64; t++) {
        round[t] = Round(t);
        for (var j = 0; j < 8; j++) {
            for (var b = 0; b < 32; b++) {
                if (t == 0) {
                    round[t].in[j][b] <== (start(j) >> b) & 1;
                } else {
                    round[t].in[j][b] <== round[t - 1].out[j][b];
                }
            }
        }
        for (var b = 0; b < 32; b++) {
            round[t].w[b] <== w[t][b];
        }
    }
    component last[8];
    for (var j = 0; j < 8; j++) {
        last[j] = Sum(1, 1, start(j));
        for (var b = 0; b < 32; b++) {
            last[j].in[0][b] <== round[63].out[j][b];
        }
        for (var b = 0; b < 32; b++) {
            out[j][b] <== last[j].out[b];
        }
    }
}

// `steps` hashes in a row. The secret start is eight words, the result two numbers of 128 bits: the
// first and the second half of the digest.
template Sha256Chain(steps) {
    signal input x[8];
    signal output digest[2];
    component bits[8];
    component hash[steps];
    for (var j = 0; j < 8; j++) {
        bits[j] = Bits(32);
        bits[j].in <== x[j];
    }
    for (var i = 0; i < steps; i++) {
        hash[i] = Sha256Of32Bytes();
        for (var j = 0; j < 8; j++) {
            for (var b = 0; b < 32; b++) {
                if (i == 0) {
                    hash[i].in[j][b] <== bits[j].out[b];
                } else {
                    hash[i].in[j][b] <== hash[i - 1].out[j][b];
                }
            }
        }
    }
    for (var half = 0; half < 2; half++) {
        var sum = 0;
        for (var j = 0; j < 4; j++) {
            for (var b = 0; b < 32; b++) {
                sum += hash[steps - 1].out[4 * half + j][b] * (1 << (32 * (3 - j) + b));
            }
        }
        digest[half] <== sum;
    }
}
