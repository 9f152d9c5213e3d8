// Stands before the toolkit's folder (-I this -I that): the toolkit's cuda.h, with those functions in the form of CUDA 12
// that gorgonia.org/cu calls and that CUDA 13 gives other parameters. Drivers keep the old functions beside the new ones.
#ifndef GPUNOTES_CUDA_H
#define GPUNOTES_CUDA_H

#include_next <cuda.h>

#if CUDA_VERSION >= 13000

#ifdef __cplusplus
extern "C" {
#endif

#undef cuCtxCreate
#define cuCtxCreate cuCtxCreate_v2
extern CUresult CUDAAPI cuCtxCreate_v2(CUcontext *, unsigned int, CUdevice);

#undef cuMemAdvise
extern CUresult CUDAAPI cuMemAdvise(CUdeviceptr, size_t, CUmem_advise, CUdevice);

#undef cuMemPrefetchAsync
extern CUresult CUDAAPI cuMemPrefetchAsync(CUdeviceptr, size_t, CUdevice, CUstream);

#undef cuGraphAddDependencies
extern CUresult CUDAAPI cuGraphAddDependencies(CUgraph, const CUgraphNode *, const CUgraphNode *, size_t);

#undef cuGraphGetEdges
extern CUresult CUDAAPI cuGraphGetEdges(CUgraph, CUgraphNode *, CUgraphNode *, size_t *);

// Parameters are the same, but drivers before 12.8 lack the second form.
#undef cuEventElapsedTime
extern CUresult CUDAAPI cuEventElapsedTime(float *, CUevent, CUevent);

#undef cuDeviceGetUuid
extern CUresult CUDAAPI cuDeviceGetUuid(CUuuid *, CUdevice);

#ifdef __cplusplus
}
#endif

#endif
#endif
