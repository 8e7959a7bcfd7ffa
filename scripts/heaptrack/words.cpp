// A text index: words, the places of each, and answers that live briefly.
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#define SITE __attribute__((noinline))

struct Document {
    std::unique_ptr<char[]> text;
    std::vector<uint32_t> lines;
};

static uint64_t state = 1;
static uint32_t next(uint32_t below) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (uint32_t)((state >> 32) * below >> 32);
}

SITE static std::unique_ptr<char[]> read_text(size_t bytes) {
    std::unique_ptr<char[]> text(new char[bytes]);
    for (size_t i = 0; i < bytes; i++) text[i] = (char)('a' + next(26));
    return text;
}

SITE static void split_lines(Document &document, size_t lines) {
    for (size_t i = 0; i < lines; i++) document.lines.push_back(next(1000));
}

SITE static void add_word(std::unordered_map<uint32_t, std::vector<uint32_t>> &index, uint32_t word, uint32_t place) {
    index[word].push_back(place);
}

SITE static std::string *answer(uint32_t number) {
    return new std::string(40 + number % 60, 'x');
}

int main() {
    std::vector<Document> documents;
    std::unordered_map<uint32_t, std::vector<uint32_t>> index;
    size_t sum = 0;
    for (uint32_t i = 0; i < 4000; i++) {
        Document document;
        document.text = read_text(6000);
        split_lines(document, 300);
        documents.push_back(std::move(document));
        for (int j = 0; j < 300; j++) add_word(index, next(60000), i);
        for (int j = 0; j < 300; j++) {
            std::string *text = answer(next(1000));
            sum += text->size();
            delete text;
        }
    }
    printf("%zu\n", sum);
}
