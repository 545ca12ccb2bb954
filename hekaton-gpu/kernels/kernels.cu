// All kernels, as one unit: to PTX for devices, and to functions for the host.
#include "arithmetic.h"
#include "msm.h"
#include "transform.h"
#include "worker.h"
