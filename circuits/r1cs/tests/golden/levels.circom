pragma circom 2.0.0;
template Half() { signal input in; signal output out; signal s; s <== in + 3; out <== s * in; }
template Main() { signal input a[4]; signal input k; signal output o[2]; component h[2];
 for (var i = 0; i < 2; i++) { h[i] = Half(); h[i].in <== a[i]; }
 signal t; t <== h[0].out; o[0] <== t + k; o[1] <== h[1].out * t; }
component main {public [k]} = Main();
