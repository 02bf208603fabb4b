// How a C++11 library vendors gemmepi: only this file includes it, with every function static, so that a
// program may link other libraries that vendor it too, in any version. Handles are owned, errors are thrown.
#define GEMMEPI_STATIC
#define GEMMEPI_IMPLEMENTATION
#include "gemmepi.h"
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace layers {

void check(gemmepi_status status) {
    if (status != GEMMEPI_OK)
        throw std::runtime_error(std::string(gemmepi_status_name(status)) + ": " + gemmepi_last_error());
}

using plan = std::unique_ptr<gemmepi_plan, void (*)(gemmepi_plan *)>;

// A device. Everything made from it must go before it does.
class device {
  public:
    explicit device(int number = 0) : context_(nullptr, gemmepi_destroy) {
        gemmepi_config config = gemmepi_config();
        gemmepi_context *context = nullptr;
        config.device = number;
        check(gemmepi_create(&config, &context));
        context_.reset(context);
    }
    gemmepi_context *get() const {
        return context_.get();
    }
    // "host" has the reason behind it, where a GPU was looked for.
    std::string name() const {
        gemmepi_context_details details;
        check(gemmepi_context_info(get(), &details));
        const std::string reason = details.fallback_reason;
        return reason.empty() ? details.name : details.name + (" (" + reason + ")");
    }
    plan prepare(const gemmepi_matmul_desc &desc) const {
        gemmepi_plan *made = nullptr;
        check(gemmepi_plan_matmul(get(), &desc, &made));
        plan owner(made, gemmepi_plan_destroy);
        check(gemmepi_plan_prepare(made, nullptr));
        return owner;
    }

  private:
    std::unique_ptr<gemmepi_context, void (*)(gemmepi_context *)> context_;
};

// Floats on a device.
class buffer {
  public:
    buffer(const device &on, std::size_t size) : on_(on), size_(size), data_(nullptr) {
        check(gemmepi_alloc(on_.get(), size * sizeof(float), &data_));
    }
    buffer(const device &on, const std::vector<float> &values) : buffer(on, values.size()) {
        write(values); // should it throw, the destructor runs: the first constructor has finished
    }
    buffer(const buffer &) = delete;
    buffer &operator=(const buffer &) = delete;
    ~buffer() {
        // It can only fail where an earlier kernel failed, which the call that waited for it has thrown.
        (void)gemmepi_free(on_.get(), data_);
    }
    void *data() const {
        return data_;
    }
    void write(const std::vector<float> &values) {
        if (values.size() != size_)
            throw std::invalid_argument("layers: " + std::to_string(size_) + " values are needed");
        check(gemmepi_upload(on_.get(), data_, values.data(), size_ * sizeof(float), nullptr));
    }
    std::vector<float> read() const {
        std::vector<float> values(size_);
        check(gemmepi_download(on_.get(), values.data(), data_, size_ * sizeof(float), nullptr));
        return values;
    }

  private:
    const device &on_;
    std::size_t size_;
    void *data_;
};

// y = silu(x W + bias) for a fixed number of rows. x: rows by inputs, W: inputs by outputs, all row-major.
class silu_layer {
  public:
    silu_layer(const device &on, std::size_t rows, std::size_t inputs, const std::vector<float> &weights,
               const std::vector<float> &bias)
        : weights_(on, weights), bias_(on, bias), x_(on, rows * inputs), y_(on, rows * bias.size()),
          plan_(on.prepare(describe(rows, inputs, bias.size()))) {
        if (weights.size() != inputs * bias.size())
            throw std::invalid_argument("layers: the weights are not inputs by outputs");
    }
    std::vector<float> operator()(const std::vector<float> &x) {
        gemmepi_matmul_args args = gemmepi_matmul_args();
        args.a = x_.data();
        args.b = weights_.data();
        args.bias = bias_.data();
        args.d = y_.data();
        x_.write(x);
        check(gemmepi_run_matmul(plan_.get(), &args, nullptr));
        return y_.read();
    }

  private:
    static gemmepi_matmul_desc describe(std::size_t rows, std::size_t inputs, std::size_t outputs) {
        gemmepi_matmul_desc desc = gemmepi_matmul_desc();
        desc.m = static_cast<int64_t>(rows);
        desc.n = static_cast<int64_t>(outputs);
        desc.k = static_cast<int64_t>(inputs);
        desc.epilogue = GEMMEPI_SILU | GEMMEPI_BIAS;
        return desc;
    }
    buffer weights_, bias_, x_, y_;
    plan plan_;
};

} // namespace layers

int main() {
    try {
        layers::device device;
        layers::silu_layer layer(device, 2, 3, {.5f, -.3f, .1f, .7f, -.2f, .4f}, {-.1f, .2f});
        const std::vector<float> y = layer({1, 2, -1, 3, -2, 4});
        std::printf("silu(x W + bias) = [%.4f %.4f; %.4f %.4f]\ncomputed by: %s\n", y[0], y[1], y[2], y[3],
                    device.name().c_str());
        return 0;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
