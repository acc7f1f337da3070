#include "eval/sources/known_tasks.h"

#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "base/hash.h"

namespace tritonrl {
namespace {

// Hashes of the problems of both releases.
struct Hashes {
  uint64_t v0, v0_1;
};

// By level and number, both from 1: HashOfTask of KernelBench/levelN of the upstream branches v0
// (commit 6500bbc8cf10) and v0.1 (129232ea3c4c).
constexpr Hashes kReleases[2][100] = {
    {
        {0xd467f85334896872, 0x7626d611b8f2c97a}, {0xdf2c1aae615e7286, 0x136a33c4d598d07c},
        {0x16153e37cffd0925, 0x310fb3bdf4f69ea1}, {0x7af43dd7672b88d1, 0x5f1476dfcbd291f3},
        {0x5ac41fb122d8346b, 0xf4d52425a8f72b4b}, {0x7390f645a2ddd203, 0x18287323c43d000a},
        {0x0a7d4ff759d3d7c0, 0x66b12b830db873ab}, {0xb4c0139ce7fc273f, 0x717f98e135d8c11b},
        {0x67bc8f022f611b5e, 0x06a133f60f0d704b}, {0x8e0a7cdc1527c8f9, 0xbd4013a4d5563e3a},
        {0x7ab4daa3e80fbc7c, 0xf4e0b2e7721b68c8}, {0x96ed873aa02212ff, 0x948d60329c341889},
        {0x7d769c172d0a2a70, 0x5ee7c49134f3ed1d}, {0x34588c41d8402c02, 0xb661589687579a27},
        {0x4a22a0b53ffcb14c, 0xeb1491ef5450d332}, {0xdfcb4e58e54d9296, 0xd3b2abe010f0732a},
        {0xd661f77fe10f8bbc, 0x00ef34b7e76d97b7}, {0x377345cd785d9559, 0x58f61b728890855d},
        {0x1b0829ac7344b323, 0xcbbfc9409662168e}, {0xad6a73600c7740a3, 0x5dea58d2392f446e},
        {0xb24a44a7c5e828be, 0x8f3ae78284ddd70b}, {0x74337a0e35cf8d0a, 0x8d47a07cbd045c94},
        {0x34ba0b50b1b42a5e, 0xc9fa418447f2d64d}, {0x6650bb8e32d7cd1c, 0x2aa5cac0c12474ed},
        {0xe6e9a2be03311e0c, 0xdbc25cc89be04306}, {0xf598f738ad61d38f, 0x6c08367ffb8a4153},
        {0xfc4ebf91081d6931, 0x21aad8c91144bee2}, {0xc9cb96d5bbd111e8, 0xfc773884c6c52af0},
        {0xa8cc2f540ab08926, 0xdadaed23e8f0194f}, {0x1ce26baa9b2bdf9c, 0x1c7b8e7dd71284db},
        {0x0dbc3c9181af497a, 0x295e84c51758555d}, {0xece952b4451ace92, 0xb73a2ed250f2d9fe},
        {0xefa6b658eacd90a9, 0x0b7f5ca58d6ec76a}, {0xd377d2c1b89053c5, 0x2e0d8b3c14a731ba},
        {0xc6c862fe3690deb3, 0xe4462f85b3eaadd0}, {0xead98b650d785bf2, 0x8f6ee1b9ee212f3c},
        {0x8a5227601489815d, 0xcf45f93a2a75102f}, {0x6478c29a1eb9346a, 0x02d29f98ba28001a},
        {0xe96c64ff311d8dc6, 0xfb8153fbe2a50679}, {0x7a72f96263fbd394, 0x8d975d7cee694651},
        {0xc54c2bab8bc63eef, 0x65bbc7b4b8c99999}, {0x6abcfa1d7e0412ce, 0x55468a5e46e24f80},
        {0xefaf8016e5cb3d7a, 0xc684de6a8afdb3e5}, {0x4889e32bea893441, 0x2c55c057fff2439d},
        {0xe0ba9991e82bb879, 0x3abae4a4776630cc}, {0xe0e15d2040d4fbe4, 0xbb683a01c421e1e2},
        {0x8d87ab348084b646, 0x537d2ff381740bdb}, {0x0facdc3c8c25971a, 0x5fedf7c91096731d},
        {0x87ab7c3dae731d86, 0x12982f0f62a711d3}, {0x53762f1cd9f198be, 0x86ecad0e77b2c9f8},
        {0xa838cd07562ffade, 0xd6a2057c4c95a973}, {0x33bea085846d69ca, 0xe1764caddce33679},
        {0x4f8c17d95044f94d, 0xdb0c4b3f62e99ffc}, {0x150705264d3b02e9, 0x98b074edf89802ed},
        {0xdaabd2419510ee2c, 0x47145a97c980da1d}, {0xbb3e6d48178a4f90, 0xc04ef3c4088981e9},
        {0x55ed6ab622230697, 0x9e84df45806e4fa3}, {0x7d61bee364f1ad6e, 0x1673075fe1a9d3fa},
        {0x219a40fa1580c7e4, 0xfc6c48ace0b1c31d}, {0x59b0b71009627219, 0x3f7204c138ec6d09},
        {0x8031ff954a643992, 0xe60fffd91a6a43ee}, {0x2a869b84d0a88e53, 0x033e91bf69225f07},
        {0x4f2f3e1be8d626f1, 0x18b1d4ea7b3a5271}, {0x3ad6bd612229d596, 0x0ad1a7811c891669},
        {0x7c4ffc392f3088f8, 0x5a2f6a47e83931e2}, {0x01a89f831561f752, 0x649fc141b68b3cd3},
        {0x82046b7e504b8527, 0xd0ddb9f06cbe48f3}, {0x64601af1cf799d2c, 0xeb318ee386ec2d35},
        {0x1f23fea916d6c6d5, 0x6014891f7ba7a66e}, {0xddd1d2d5b78bfc0a, 0x8b56475485149dc4},
        {0xf19f79340de64f7b, 0x02bb0b2e7744eb4c}, {0xf570bba33c15f2a3, 0xe157db716a0915aa},
        {0x089212356e21786c, 0x4622db3c59f819c4}, {0x93939c132bb0cd8f, 0x25c5106ef9f52091},
        {0xe83371602637fda4, 0x1926419776cf1be2}, {0xdd0198fd53792038, 0x83736e4c38632e0f},
        {0x3c561015e6561993, 0xa16f0026c2249c9f}, {0xfad316b6f8aba41a, 0x0044003d489f732f},
        {0x94bffa0a0708bbf1, 0x9e1baebd13c14f9b}, {0xd645a92803a6057b, 0x4706128a7dfef02d},
        {0x75ed1e29503a85b4, 0x8f29279652267355}, {0x2b579db1ecbea2f7, 0x23578d4c1257ee9c},
        {0xe918a0effb04f140, 0x09f5690aceba6d92}, {0x15c9acf56c9fe2ca, 0x1af31dab803ef4f4},
        {0xde1a744c00a8ffef, 0x5538e14c57c79161}, {0xf72d22b9a5fdb3d8, 0xcee48ffdb1390038},
        {0x5a077112ca0375e7, 0x5608fbde926998ce}, {0xd449e426d48e15e7, 0x4c715023579e2edc},
        {0xe4d764b5813b3732, 0x24eea19436dc41aa}, {0xbf51ba36b0438dde, 0x9328ba2224ba0622},
        {0xa44f7ad8fd690476, 0x807f906bab8c26b5}, {0x35e767412bb48712, 0x1473fcb1fb99bf39},
        {0x41732a95ad870913, 0x366e0bf06728f505}, {0xdb4f4b3c6e058082, 0x250ff62162a9c21a},
        {0x5c28f9caf5fdf60e, 0xe095c07af883ef75}, {0x6e020ea94960c2ce, 0xfad3864dfcfbf355},
        {0x6bbeb0cff50ee7e1, 0xcdc829e3e10eb5d0}, {0xe45e4351c227d4a8, 0x599a9df462b8d1b4},
        {0xef128caec677303a, 0x79a460fa7a84b3d5}, {0xe384ab769b730738, 0x8e7ab261247e266e},
    },
    {
        {0x18afe4d0116e5200, 0x45ee3a3db038396c}, {0x163228676b364b20, 0x2b69e31d12d28d29},
        {0x3840cb298f408503, 0x43613691d1dec5cc}, {0x5f467ca21ac1b38f, 0x7a234db325da9476},
        {0xb9cb52b8235673e8, 0x442f35521753e481}, {0x29839fb4948ce67e, 0x55322b483d9bf27e},
        {0x74545ee99ea6c3dc, 0xcd0390e07dda478a}, {0x23b88e235cb28347, 0x80e0126cbb0f9287},
        {0x4a02054ac32152f9, 0x110e75834cd898f5}, {0x920aadb73bff60d0, 0xa8f0fab54e125017},
        {0xe3216882f38461e1, 0xe10fa44d0dbc6f6d}, {0x488cd04509f20284, 0x0150537a4e53a29b},
        {0xdfd96f454a85a281, 0xeb9a5b870a617ad8}, {0xd5f47f906a06f09e, 0x8bd6a36d6dafc891},
        {0xb4695bdd5910e4a7, 0x43f63a8c7edfdde8}, {0x906078b9491953cf, 0x3a5a97178dad5b98},
        {0x02e65e287420ae26, 0xbf60129922d42540}, {0xc85837458eaa1d69, 0x0a7391a12a0c8816},
        {0xd9e913a6053dd280, 0xb7b68e7498c80dfe}, {0x4c1df792e469dd1d, 0xd5977ca8e549aac4},
        {0x4c68a0bd716a8f34, 0xc6488d1d4bebd1b4}, {0x3d52056b0c319244, 0x3ff6a8c5da733c97},
        {0x6dcd4381ca01198d, 0x9677116401cf1ec4}, {0x272c134ef6dcd473, 0x1aad5ff832f3cd5e},
        {0xbc56847129323927, 0x15e3e645a6012d77}, {0xe73850d51886a404, 0x807660889baed4d0},
        {0x4e46b3556821297a, 0x29f0c5f4ddc5b3b7}, {0x533e283144dbf226, 0x5ed41cc50c8b2dfe},
        {0x5b014860a12513ca, 0xf7b1c4c4c90d56de}, {0xc99e7950887d45a3, 0x461335ed064d25b1},
        {0x23b49c1a6d21347b, 0xc66711246404f711}, {0xdb42ba696c1253b9, 0x61653138241c4911},
        {0x93bd7eb0e4fbd7a1, 0x50f77c555d65b3cf}, {0x425576e4b1968448, 0x81095e0048e53905},
        {0x35596150e023f630, 0x40a9db82d8b09224}, {0xe09140447547e2b1, 0xe8a14171f06b41a2},
        {0xe8946e79d591ca80, 0xfe2e8dc5418f1549}, {0x77cd718945f6c292, 0xfb15e2651e884d9c},
        {0x5a6fb71ed76c44cb, 0x6f7733e04363f470}, {0x126e13870dc37d00, 0x333bf992fd77297a},
        {0x5b8bf245be878918, 0xe95f261a671d1b5a}, {0xb7d5bbbd7a63b20e, 0x0eeb1e46e5bacfed},
        {0xe77e06d17de560b0, 0xe274319f222a8938}, {0x197914585c6b0391, 0x8b08cbe307167cb0},
        {0xdb8838729be9f578, 0xf584324662a06591}, {0x51ae880a4ebbc7c7, 0xb52e744528e32863},
        {0x135257bc89c87963, 0xdad33b133cc3a085}, {0x174aec66ae2fdd66, 0xa2f6bc6b97dfff81},
        {0x0e073336c0f8a589, 0x9386889fc8085967}, {0xafb3c4f79e9874ee, 0xc094d9151eed193c},
        {0x8c1d39c3dc3658bb, 0x0a777c0d54e91a3a}, {0x4f2196530d7a3cfc, 0xe9b0070822d17b3b},
        {0x4da0b8e0e653243f, 0xd296d0b49a0a620b}, {0xaed370065be375ce, 0x863895c0021967f1},
        {0xe32faf0c4436675f, 0xef3a425677ff103d}, {0xadf4547fe1362aa6, 0x00070bf8cc6a0d0f},
        {0xbc740b9dc97d32ef, 0x6c3068e8639d0fce}, {0x91ea18c5199ba262, 0x7be807505892db86},
        {0x1bcf0542b4736174, 0xaf4bfb47631eb3ee}, {0x00a210db76937a42, 0xb5f0476a56ce409c},
        {0xc87ac2064768924b, 0x6ba34e37873d2f62}, {0x9792b9f5db5d64ae, 0x9ac23a8651df7ef3},
        {0x20b3d408ed19ea15, 0xd4013c4cf5639bd5}, {0x3931c0b3e751bd0f, 0x3cb78d4eb7f71076},
        {0xffb0a924845b49ab, 0x7bd02c41c99f336d}, {0x3bdada4c049d3cc3, 0x7f5288aaf6389a94},
        {0xc90c478629f8dd83, 0x3a9572034d80dd06}, {0x41aa93813b88d873, 0x89b99c3df1d7d0fa},
        {0x64b8a1fce7da91e0, 0x442df07c27315075}, {0xbede6eaac0ad7025, 0xa1544425f96477ba},
        {0x703fc94ce12045d5, 0x412f9c4244239814}, {0xca2678f14c05eee1, 0xcc65e3beca217d11},
        {0xea1c159ec11bb2e4, 0x5c2d1c40a5ba0050}, {0x764ffda8921feda6, 0x7d05e9bcc2a44448},
        {0x17351d635dd7df8c, 0x5485a335508d1a92}, {0xd7a6ecfaa36f419e, 0x88e932ace4f16e04},
        {0x10a38d685275f63e, 0xcc3dcfba9cd5526d}, {0xd1706ab941088856, 0x72724f4f417c8e59},
        {0x979cef3d00088c65, 0x9355597767e42b73}, {0x8384e61b38fd3fb3, 0x44dff2e3c3e9b014},
        {0x7ee0dc0d3cef85ae, 0x291d748f061f23d3}, {0x1695306784435d84, 0x1085dcf3a5845103},
        {0xe168a874424a398b, 0x223d45d8423c5536}, {0x23f83d617346d3e7, 0xe6f588ca44598dc8},
        {0x00f1ebcbefb82332, 0xba63b5b156a347f2}, {0xf7e05e29a78136b7, 0xd6fc788bd7aa852d},
        {0x27412735f5f88850, 0xab44c31f27a72658}, {0x06f0bca172a7a9a1, 0xeda8a47c825eb3fc},
        {0xe970f2878b05f1f5, 0x300030609984e750}, {0x0d452087ecfd09d2, 0xbd2eaa246f1176ad},
        {0x7bc2fa99eeb96b89, 0x3b571801aec40ec4}, {0x0f4fba441247a05e, 0xd5732faa8c80a56b},
        {0x06ce4ca991b150c0, 0x3f9c3e542afa3205}, {0x7d3a26634259484f, 0x649fe2a6aaefeffc},
        {0x5c93d72aaa20f40a, 0x0c5123322ffe7a54}, {0xf1cc3eeab72f4686, 0x164edd0135adff49},
        {0x9929eacd5cc6d963, 0x49ed9c680b1764dd}, {0xef263c3ececa06bb, 0x8e5df29ff246f69c},
        {0xd32a0817330fbc81, 0xa27769675f355605}, {0xdef159dbf1dc4986, 0x1f9ce1ae75f5e998},
    },
};

struct Change {
  int level, problem;
  uint64_t hash;
  const char* date;  // on upstream's main
};

// The problems that differ from v0.1 on main at commit 423217d9fda9 (2026-03-05), by date.
constexpr Change kChanges[] = {
    {1, 92, 0xa7c323361cffa4ad, "2025-12-24"},
    {1, 97, 0x82dddebce4ef685b, "2026-01-02"},
    {1, 12, 0x868bc16b165dd002, "2026-01-19"},
};

}  // namespace

uint64_t HashOfTask(const std::string& source) {
  const std::string text = absl::StrReplaceAll(source, {{"\r\n", "\n"}});
  return Hash64(absl::StripTrailingAsciiWhitespace(text));
}

KnownTask FindKnownTask(int level, int problem, uint64_t hash) {
  if (level < 1 || level > std::ssize(kReleases) || problem < 1 ||
      problem > std::ssize(kReleases[0])) {
    return {.release = KnownTask::Release::kOther};
  }
  const Hashes& hashes = kReleases[level - 1][problem - 1];
  if (hash == hashes.v0) return {.release = KnownTask::Release::kV0};
  KnownTask known = {.release = KnownTask::Release::kV0_1};
  for (const Change& change : kChanges) {
    if (change.level != level || change.problem != problem) continue;
    known.date = change.date;
    if (hash != change.hash) continue;
    known.release = KnownTask::Release::kMain;
    return known;
  }
  return hash == hashes.v0_1 ? known : KnownTask();
}

}  // namespace tritonrl
