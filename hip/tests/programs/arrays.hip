// Arrays of one to three dimensions and of layers: what is copied in comes out again, by rows, by bytes and as parts of slices.
#include "check.h"
#include <cstring>

static std::vector<float> numbers(size_t count, float first) {
    std::vector<float> all(count);
    for (size_t i = 0; i < count; ++i) all[i] = first + static_cast<float>(i) * 0.5f;
    return all;
}

static void rows() {
    const size_t width = 19, height = 7, pitch = 24;
    hipArray_t array;
    hipChannelFormatDesc desc = hipCreateChannelDesc(32, 0, 0, 0, hipChannelFormatKindFloat);
    CHECK(hipMallocArray(&array, &desc, width, height, hipArrayDefault));
    std::vector<float> in = numbers(pitch * height, 1);
    CHECK(hipMemcpy2DToArray(array, 0, 0, in.data(), pitch * sizeof(float), width * sizeof(float), height,
                             hipMemcpyHostToDevice));
    std::vector<float> out(width * height, -1);
    CHECK(hipMemcpy2DFromArray(out.data(), width * sizeof(float), array, 0, 0, width * sizeof(float), height,
                               hipMemcpyDeviceToHost));
    for (size_t y = 0; y < height; ++y)
        for (size_t x = 0; x < width; ++x) EXPECT(out[y * width + x] == in[y * pitch + x]);

    // A part of device memory in, in a stream, and all of it out.
    float* device;
    hipStream_t stream;
    CHECK(hipStreamCreate(&stream));
    std::vector<float> part = numbers(12, 500);
    CHECK(hipMalloc(&device, 12 * sizeof(float)));
    CHECK(hipMemcpy(device, part.data(), 12 * sizeof(float), hipMemcpyHostToDevice));
    CHECK(hipMemcpy2DToArrayAsync(array, 5 * sizeof(float), 2, device, 4 * sizeof(float), 4 * sizeof(float), 3,
                                  hipMemcpyDeviceToDevice, stream));
    CHECK(hipMemcpy2DFromArrayAsync(out.data(), width * sizeof(float), array, 0, 0, width * sizeof(float), height,
                                    hipMemcpyDeviceToHost, stream));
    CHECK(hipStreamSynchronize(stream));
    for (size_t y = 0; y < height; ++y)
        for (size_t x = 0; x < width; ++x) {
            const bool inside = x >= 5 && x < 9 && y >= 2 && y < 5;
            EXPECT(out[y * width + x] == (inside ? part[(y - 2) * 4 + x - 5] : in[y * pitch + x]));
        }
    CHECK(hipStreamDestroy(stream));
    CHECK(hipFree(device));
    CHECK(hipFreeArray(array));
}

static void a_line() {
    HIP_ARRAY_DESCRIPTOR desc;
    std::memset(&desc, 0, sizeof desc);
    desc.Width = 33;
    desc.Format = HIP_AD_FORMAT_SIGNED_INT16;
    desc.NumChannels = 2;
    hipArray_t array;
    CHECK(hipArrayCreate(&array, &desc));
    std::vector<short> in(66), out(66, -1);
    for (int i = 0; i < 66; ++i) in[i] = static_cast<short>(i * 97);
    CHECK(hipMemcpyHtoA(array, 0, in.data(), 66 * sizeof(short)));
    CHECK(hipMemcpyHtoA(array, 4 * sizeof(short), in.data() + 20, 8 * sizeof(short)));
    CHECK(hipMemcpyAtoH(out.data(), array, 2 * sizeof(short), 64 * sizeof(short)));
    for (int i = 0; i < 64; ++i) EXPECT(out[i] == in[i + 2 >= 4 && i + 2 < 12 ? i + 18 : i + 2]);
    CHECK(hipArrayDestroy(array));
}

static void slices(unsigned flags) {
    const size_t width = 6, height = 5, depth = 4;
    hipArray_t one, two;
    hipChannelFormatDesc desc = hipCreateChannelDesc(32, 0, 0, 0, hipChannelFormatKindFloat);
    CHECK(hipMalloc3DArray(&one, &desc, make_hipExtent(width, height, depth), flags));
    CHECK(hipMalloc3DArray(&two, &desc, make_hipExtent(width, height, depth), flags));
    std::vector<float> in = numbers(width * height * depth, 3), zeros(in.size(), 0), out(in.size(), -1);
    auto memory = [&](std::vector<float>& data) {
        return make_hipPitchedPtr(data.data(), width * sizeof(float), width, height);
    };
    hipMemcpy3DParms copy;
    std::memset(&copy, 0, sizeof copy);
    copy.srcPtr = memory(in);
    copy.dstArray = one;
    copy.extent = make_hipExtent(width, height, depth);
    copy.kind = hipMemcpyHostToDevice;
    CHECK(hipMemcpy3D(&copy));
    copy.srcPtr = memory(zeros);
    copy.dstArray = two;
    CHECK(hipMemcpy3D(&copy));

    // A part from one to the other, in elements, and all of that out.
    std::memset(&copy, 0, sizeof copy);
    copy.srcArray = one;
    copy.srcPos = make_hipPos(1, 2, 0);
    copy.dstArray = two;
    copy.dstPos = make_hipPos(2, 1, 2);
    copy.extent = make_hipExtent(4, 3, 2);
    copy.kind = hipMemcpyDeviceToDevice;
    CHECK(hipMemcpy3D(&copy));
    std::memset(&copy, 0, sizeof copy);
    copy.srcArray = two;
    copy.dstPtr = memory(out);
    copy.extent = make_hipExtent(width, height, depth);
    copy.kind = hipMemcpyDeviceToHost;
    CHECK(hipMemcpy3D(&copy));
    for (size_t z = 0; z < depth; ++z)
        for (size_t y = 0; y < height; ++y)
            for (size_t x = 0; x < width; ++x) {
                const bool inside = x >= 2 && y >= 1 && y < 4 && z >= 2;
                const float expected = inside ? in[((z - 2) * height + y + 1) * width + x - 1] : 0;
                EXPECT(out[(z * height + y) * width + x] == expected);
            }

    // The last slice, as the driver's functions describe it: HIP 5 and 6 lay that out differently.
    HIP_MEMCPY3D driver;
    std::memset(&driver, 0, sizeof driver);
    driver.srcMemoryType = hipMemoryTypeArray;
    driver.srcArray = one;
    driver.srcZ = depth - 1;
    driver.dstMemoryType = hipMemoryTypeHost;
    driver.dstHost = out.data();
    driver.dstPitch = width * sizeof(float);
    driver.dstHeight = height;
    driver.WidthInBytes = width * sizeof(float);
    driver.Height = height;
    driver.Depth = 1;
    CHECK(hipDrvMemcpy3D(&driver));
    for (size_t i = 0; i < width * height; ++i) EXPECT(out[i] == in[(depth - 1) * width * height + i]);
    CHECK(hipFreeArray(one));
    CHECK(hipFreeArray(two));
}

int main() {
    rows();
    a_line();
    slices(hipArrayDefault);
    slices(hipArrayLayered);
    return passed("arrays");
}
