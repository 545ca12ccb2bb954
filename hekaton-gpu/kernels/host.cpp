// The kernels as functions for the host.
#include "kernels.cu"
