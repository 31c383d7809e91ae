// A graph from a captured stream with a fork, another from nodes, and an update of the first.
#include "check.h"

__global__ void scale(float* data, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] *= factor;
}

__global__ void add(float* to, const float* from, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] += from[i];
}

__device__ float bias[4];

__global__ void add_bias(float* to, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] += bias[i % 4];
}

static void count(void* counter) { ++*static_cast<int*>(counter); }

// a * p + b * q, where b is scaled in a stream of its own.
static hipGraph_t capture(hipStream_t stream, float* a, float* b, float p, float q, int n, int* calls) {
    hipStream_t other;
    hipEvent_t fork, join;
    CHECK(hipStreamCreateWithFlags(&other, hipStreamNonBlocking));
    CHECK(hipEventCreateWithFlags(&fork, hipEventDisableTiming));
    CHECK(hipEventCreateWithFlags(&join, hipEventDisableTiming));
    CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    CHECK(hipEventRecord(fork, stream));
    CHECK(hipStreamWaitEvent(other, fork, 0));
    scale<<<(n + 63) / 64, 64, 0, stream>>>(a, p, n);
    scale<<<(n + 63) / 64, 64, 0, other>>>(b, q, n);
    CHECK(hipEventRecord(join, other));
    CHECK(hipStreamWaitEvent(stream, join, 0));
    add<<<(n + 63) / 64, 64, 0, stream>>>(a, b, n);
    hipGraph_t graph;
    CHECK(hipStreamEndCapture(stream, &graph));
    size_t nodes = 3;
    hipGraphNode_t all[3], host;
    CHECK(hipGraphGetNodes(graph, all, &nodes));
    hipHostNodeParams call = {count, calls};
    CHECK(hipGraphAddHostNode(&host, graph, &all[2], 1, &call));
    CHECK(hipEventDestroy(fork));
    CHECK(hipEventDestroy(join));
    CHECK(hipStreamDestroy(other));
    return graph;
}

int main() {
    const int n = 300;
    std::vector<float> one(n, 1), host(n);
    float *a, *b;
    CHECK(hipMalloc(&a, n * sizeof(float)));
    CHECK(hipMalloc(&b, n * sizeof(float)));
    hipStream_t stream;
    CHECK(hipStreamCreate(&stream));
    int calls = 0;
    auto reset = [&] {
        CHECK(hipMemcpy(a, one.data(), n * sizeof(float), hipMemcpyHostToDevice));
        CHECK(hipMemcpy(b, one.data(), n * sizeof(float), hipMemcpyHostToDevice));
    };
    auto all_are = [&](float value) {
        CHECK(hipMemcpy(host.data(), a, n * sizeof(float), hipMemcpyDeviceToHost));
        for (float x : host) EXPECT(x == value);
    };
    reset();
    hipGraph_t graph = capture(stream, a, b, 2, 3, n, &calls);
    all_are(1);
    hipGraphExec_t exec;
    CHECK(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
    CHECK(hipGraphLaunch(exec, stream));
    CHECK(hipStreamSynchronize(stream));
    all_are(5);
    EXPECT(calls == 1);
    // 5 * 2 + 3 * 3
    CHECK(hipGraphLaunch(exec, stream));
    CHECK(hipStreamSynchronize(stream));
    all_are(19);

    // The same work with other factors.
    reset();
    hipGraph_t changed = capture(stream, a, b, 10, 20, n, &calls);
    hipGraphNode_t node;
    hipGraphExecUpdateResult result;
    CHECK(hipGraphExecUpdate(exec, changed, &node, &result));
    EXPECT(result == hipGraphExecUpdateSuccess);
    CHECK(hipGraphLaunch(exec, stream));
    CHECK(hipStreamSynchronize(stream));
    all_are(30);
    EXPECT(calls == 3);

    // One argument of one kernel, as programs do that keep a graph.
    size_t count_of_nodes = 0;
    CHECK(hipGraphGetNodes(graph, nullptr, &count_of_nodes));
    EXPECT(count_of_nodes == 4);
    std::vector<hipGraphNode_t> nodes(count_of_nodes);
    CHECK(hipGraphGetNodes(graph, nodes.data(), &count_of_nodes));
    hipKernelNodeParams kernel;
    CHECK(hipGraphKernelNodeGetParams(nodes[0], &kernel));
    EXPECT(kernel.func == reinterpret_cast<void*>(scale));
    float factor = 100;
    void* arguments[] = {kernel.kernelParams[0], &factor, kernel.kernelParams[2]};
    kernel.kernelParams = arguments;
    CHECK(hipGraphExecKernelNodeSetParams(exec, nodes[0], &kernel));
    reset();
    CHECK(hipGraphLaunch(exec, stream));
    CHECK(hipStreamSynchronize(stream));
    all_are(120);

    // From nodes: a variable is set and added.
    const float biases[4] = {1, 2, 3, 4};
    hipGraph_t built;
    CHECK(hipGraphCreate(&built, 0));
    hipGraphNode_t to_symbol, fill, launch;
    CHECK(hipGraphAddMemcpyNodeToSymbol(&to_symbol, built, nullptr, 0, HIP_SYMBOL(bias), biases, sizeof biases, 0,
                                        hipMemcpyHostToDevice));
    hipMemsetParams zero = {};
    zero.dst = a;
    zero.elementSize = sizeof(float);
    zero.width = n;
    zero.height = 1;
    CHECK(hipGraphAddMemsetNode(&fill, built, nullptr, 0, &zero));
    int size = n;
    void* of_bias[] = {&a, &size};
    hipKernelNodeParams params = {};
    params.func = reinterpret_cast<void*>(add_bias);
    params.gridDim = dim3((n + 63) / 64);
    params.blockDim = dim3(64);
    params.kernelParams = of_bias;
    hipGraphNode_t before[] = {to_symbol, fill};
    CHECK(hipGraphAddKernelNode(&launch, built, before, 2, &params));
    hipGraphExec_t second;
    CHECK(hipGraphInstantiate(&second, built, nullptr, nullptr, 0));
    CHECK(hipGraphLaunch(second, nullptr));
    CHECK(hipMemcpy(host.data(), a, n * sizeof(float), hipMemcpyDeviceToHost));
    for (int i = 0; i < n; ++i) EXPECT(host[i] == biases[i % 4]);

    // What waits for a stream that is captured is an error, and the capture is lost.
    CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    EXPECT(hipMemcpy(a, b, 4, hipMemcpyDeviceToDevice) == hipErrorStreamCaptureImplicit);
    hipGraph_t lost;
    EXPECT(hipStreamEndCapture(stream, &lost) == hipErrorStreamCaptureInvalidated);
    EXPECT(lost == nullptr);
    EXPECT(hipGetLastError() == hipErrorStreamCaptureInvalidated);

    for (hipGraphExec_t gone : {exec, second}) CHECK(hipGraphExecDestroy(gone));
    for (hipGraph_t gone : {graph, changed, built}) CHECK(hipGraphDestroy(gone));
    CHECK(hipStreamDestroy(stream));
    CHECK(hipFree(a));
    CHECK(hipFree(b));
    return passed("graphs");
}
