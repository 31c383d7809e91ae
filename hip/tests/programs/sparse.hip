// rocSPARSE's products and triangular solves beside the same on the host.
#include <hip/hip_runtime.h>
#include <rocsparse/rocsparse.h>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                             \
    do {                                                                                        \
        int code = static_cast<int>(call);                                                      \
        if (code != 0) {                                                                        \
            std::printf("%d: %s: %d\n", __LINE__, #call, code);                                 \
            std::exit(1);                                                                       \
        }                                                                                       \
    } while (0)

struct Csr {
    int n;
    std::vector<int> rows{0}, columns;
    std::vector<double> values;
};

// A triangular matrix with up to nine further entries in a row, some of them far from the diagonal.
static Csr triangle(int n, bool lower) {
    Csr matrix;
    matrix.n = n;
    unsigned state = 12345;
    auto next = [&](unsigned most) {
        state = state * 1664525u + 1013904223u;
        return (state >> 8) % most;
    };
    for (int i = 0; i < n; ++i) {
        int room = lower ? i : n - 1 - i;
        std::vector<char> taken(n);
        for (unsigned k = next(10); k > 0 && room > 0; --k) {
            int reach = k % 3 ? std::min(room, 8) : room;
            int distance = 1 + next(reach);
            taken[lower ? i - distance : i + distance] = 1;
        }
        taken[i] = 1;
        for (int j = 0; j < n; ++j) {
            if (!taken[j]) continue;
            matrix.columns.push_back(j);
            matrix.values.push_back(i == j ? 2.0 + next(100) * 0.01 : (next(200) - 100.0) * 0.002);
        }
        matrix.rows.push_back(matrix.columns.size());
    }
    return matrix;
}

template <typename T>
static T* upload(const std::vector<T>& host) {
    T* device;
    CHECK(hipMalloc(&device, host.size() * sizeof(T)));
    CHECK(hipMemcpy(device, host.data(), host.size() * sizeof(T), hipMemcpyHostToDevice));
    return device;
}

static void compare(const char* what, const double* device, const std::vector<double>& expected) {
    std::vector<double> got(expected.size());
    CHECK(hipMemcpy(got.data(), device, got.size() * sizeof(double), hipMemcpyDeviceToHost));
    for (size_t i = 0; i < got.size(); ++i) {
        if (!(std::fabs(got[i] - expected[i]) <= 1e-11 * (1 + std::fabs(expected[i])))) {
            std::printf("%s: element %zu is %.17g, not %.17g\n", what, i, got[i], expected[i]);
            std::exit(1);
        }
    }
}

static void check(rocsparse_handle handle, int n, bool lower) {
    Csr matrix = triangle(n, lower);
    int entries = matrix.columns.size();
    std::vector<double> x(n), product(n), solution(n);
    for (int i = 0; i < n; ++i) x[i] = std::sin(i + 1.0);
    for (int i = 0; i < n; ++i)
        for (int k = matrix.rows[i]; k < matrix.rows[i + 1]; ++k) product[i] += matrix.values[k] * x[matrix.columns[k]];
    for (int step = 0; step < n; ++step) {
        int i = lower ? step : n - 1 - step;
        double rest = 1.5 * x[i], diagonal = 0;
        for (int k = matrix.rows[i]; k < matrix.rows[i + 1]; ++k) {
            if (matrix.columns[k] == i) diagonal = matrix.values[k];
            else rest -= matrix.values[k] * solution[matrix.columns[k]];
        }
        solution[i] = rest / diagonal;
    }

    int *rows = upload(matrix.rows), *columns = upload(matrix.columns);
    double *values = upload(matrix.values), *input = upload(x), *output = upload(std::vector<double>(n));
    rocsparse_mat_descr description;
    CHECK(rocsparse_create_mat_descr(&description));
    double one = 1, zero = 0, factor = 1.5;
    CHECK(rocsparse_dcsrmv(handle, rocsparse_operation_none, n, n, entries, &one, description, values, rows, columns, nullptr,
                           input, &zero, output));
    CHECK(hipDeviceSynchronize());
    compare(lower ? "product, lower" : "product, upper", output, product);

    CHECK(rocsparse_set_mat_fill_mode(description, lower ? rocsparse_fill_mode_lower : rocsparse_fill_mode_upper));
    CHECK(rocsparse_set_mat_diag_type(description, rocsparse_diag_type_non_unit));
    rocsparse_mat_info info;
    CHECK(rocsparse_create_mat_info(&info));
    size_t bytes;
    CHECK(rocsparse_dcsrsv_buffer_size(handle, rocsparse_operation_none, n, entries, description, values, rows, columns, info,
                                       &bytes));
    void* buffer;
    CHECK(hipMalloc(&buffer, bytes));
    CHECK(rocsparse_dcsrsv_analysis(handle, rocsparse_operation_none, n, entries, description, values, rows, columns, info,
                                    rocsparse_analysis_policy_force, rocsparse_solve_policy_auto, buffer));
    CHECK(rocsparse_dcsrsv_solve(handle, rocsparse_operation_none, n, entries, &factor, description, values, rows, columns, info,
                                 input, output, rocsparse_solve_policy_auto, buffer));
    CHECK(hipDeviceSynchronize());
    int pivot;
    if (rocsparse_csrsv_zero_pivot(handle, description, info, &pivot) != rocsparse_status_success)
        std::printf("row %d has no diagonal\n", pivot), std::exit(1);
    compare(lower ? "solve, lower" : "solve, upper", output, solution);
    CHECK(rocsparse_destroy_mat_info(info));
    CHECK(rocsparse_destroy_mat_descr(description));
    for (void* memory : {static_cast<void*>(rows), static_cast<void*>(columns), static_cast<void*>(values),
                         static_cast<void*>(input), static_cast<void*>(output), buffer}) CHECK(hipFree(memory));
}

int main() {
    rocsparse_handle handle;
    CHECK(rocsparse_create_handle(&handle));
    for (int n : {1, 100, 700})
        for (bool lower : {true, false}) check(handle, n, lower);
    CHECK(rocsparse_destroy_handle(handle));
    std::printf("sparse passed\n");
    return 0;
}
