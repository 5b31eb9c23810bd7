// DLPack 1.x tensors to ours and back: types, lanes, devices, missing strides, byte offsets.
#include "runtime/capi/dlpack.h"

#include "runtime/include/nsa/nsa.h"

#include <gtest/gtest.h>
#include <string>

using namespace nsa::capi;

namespace {

struct Sample {
  alignas(16) std::byte memory[64] = {};
  int64_t shape[3] = {2, 3, 4};
  int64_t strides[3] = {100, 20, 1};
  DlTensor tensor = {memory, {DlDeviceType::kCpu, 0}, 3, {DlTypeCode::kBfloat, 16, 1}, shape, strides, 0};
};

TEST(Dlpack, EachTypeAndDevice) {
  const struct {
    DlTypeCode code;
    uint8_t bits;
    nsa_dtype dtype;
  } types[] = {{DlTypeCode::kBfloat, 16, NSA_BF16},
               {DlTypeCode::kFloat, 16, NSA_FP16},
               {DlTypeCode::kFloat, 32, NSA_FP32},
               {DlTypeCode::kInt, 32, NSA_INT32}};
  for (const auto &type : types)
    for (DlDeviceType device :
         {DlDeviceType::kCpu, DlDeviceType::kCuda, DlDeviceType::kCudaHost, DlDeviceType::kCudaManaged}) {
      Sample sample;
      sample.tensor.device.type = device;
      sample.tensor.dtype.code = type.code;
      sample.tensor.dtype.bits = type.bits;
      nsa_tensor tensor;
      nsa_error error;
      ASSERT_EQ(nsa_tensor_from_dlpack(&sample.tensor, &tensor, &error), NSA_OK) << error.message;
      EXPECT_EQ(tensor.size, sizeof(nsa_tensor));
      EXPECT_EQ(tensor.dtype, type.dtype);
      EXPECT_EQ(tensor.rank, 3);
      EXPECT_EQ(tensor.data, sample.memory);
      EXPECT_EQ(tensor.shape[2], 4);
      EXPECT_EQ(tensor.strides[0], 100);
    }
}

TEST(Dlpack, NullStridesMeanRowMajorAndTheByteOffsetIsAdded) {
  Sample sample;
  sample.tensor.strides = nullptr;
  sample.tensor.byteOffset = 32;
  nsa_tensor tensor;
  ASSERT_EQ(nsa_tensor_from_dlpack(&sample.tensor, &tensor, nullptr), NSA_OK);
  EXPECT_EQ(tensor.data, sample.memory + 32);
  EXPECT_EQ(tensor.strides[0], 12);
  EXPECT_EQ(tensor.strides[1], 4);
  EXPECT_EQ(tensor.strides[2], 1);
}

TEST(Dlpack, WhatCannotBeTakenIsNamed) {
  const struct {
    const char *field;
    void (*spoil)(Sample &);
  } rows[] = {
      {"device.device_type", [](Sample &s) { s.tensor.device.type = static_cast<DlDeviceType>(8); }},
      {"dtype.lanes", [](Sample &s) { s.tensor.dtype.lanes = 4; }},
      {"dtype", [](Sample &s) { s.tensor.dtype.bits = 64; }},
      {"dtype", [](Sample &s) { s.tensor.dtype.code = DlTypeCode::kUInt; }},
      {"ndim", [](Sample &s) { s.tensor.rank = 6; }},
      {"ndim", [](Sample &s) { s.tensor.rank = 0; }},
      {"shape", [](Sample &s) { s.tensor.shape = nullptr; }},
      {"shape", [](Sample &s) { s.shape[0] = s.shape[1] = s.shape[2] = int64_t{1} << 40; }},
  };
  for (const auto &row : rows) {
    Sample sample;
    row.spoil(sample);
    nsa_tensor tensor;
    nsa_error error;
    EXPECT_EQ(nsa_tensor_from_dlpack(&sample.tensor, &tensor, &error), NSA_INVALID_ARGUMENT) << row.field;
    EXPECT_STREQ(error.field, row.field);
    EXPECT_STRNE(error.rule, "");
  }
  nsa_tensor tensor;
  EXPECT_EQ(nsa_tensor_from_dlpack(nullptr, &tensor, nullptr), NSA_INVALID_ARGUMENT);
}

TEST(Dlpack, ThereAndBack) {
  for (nsa_dtype dtype : {NSA_BF16, NSA_FP16, NSA_FP32, NSA_INT32}) {
    float memory[8];
    nsa_tensor tensor = NSA_INIT(nsa_tensor);
    tensor.data = memory;
    tensor.dtype = dtype;
    tensor.rank = 2;
    tensor.shape[0] = 2;
    tensor.shape[1] = 4;
    tensor.strides[0] = 4;
    tensor.strides[1] = 1;
    DlTensor there;
    nsa_error error;
    ASSERT_EQ(nsa_tensor_to_dlpack(&tensor, "cuda:3", &there, &error), NSA_OK) << error.message;
    EXPECT_EQ(there.device.type, DlDeviceType::kCuda);
    EXPECT_EQ(there.device.id, 3);
    EXPECT_EQ(there.shape, tensor.shape);
    nsa_tensor back;
    ASSERT_EQ(nsa_tensor_from_dlpack(&there, &back, nullptr), NSA_OK);
    EXPECT_EQ(back.data, memory);
    EXPECT_EQ(back.dtype, dtype);
    EXPECT_EQ(back.rank, 2);
    EXPECT_EQ(back.strides[0], 4);
  }
}

TEST(Dlpack, DevicesThatDoNotExistAreNamed) {
  nsa_tensor tensor = NSA_INIT(nsa_tensor);
  tensor.rank = 1;
  DlTensor there;
  for (const char *device : {"gpu", "cuda", "cuda:", "cuda:x", "cuda:-1", ""}) {
    nsa_error error;
    EXPECT_EQ(nsa_tensor_to_dlpack(&tensor, device, &there, &error), NSA_INVALID_ARGUMENT) << device;
    EXPECT_STREQ(error.field, "device");
  }
}

} // namespace
