/* Exceptions through frames, destructors on their way, and a little of the standard library. */
#include "zoo.h"

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace zoo {

class Cage {
public:
	explicit Cage(const char *animal);
	~Cage();
	static int open;

private:
	const char *animal;
};

int Cage::open;

__attribute__((noinline))
Cage::Cage(const char *animal) : animal(animal)
{
	open++;
	say("  enter %s", animal);
}

__attribute__((noinline))
Cage::~Cage()
{
	open--;
	say("  leave %s", animal);
}

struct Escape : std::runtime_error {
	Escape(const std::string &who, int distance) : std::runtime_error(who + " escaped"), distance(distance) {}
	int distance;
};

__attribute__((noinline, noipa)) int
feed(int animal)
{
	if (animal == 1)
		throw Escape("monkey", 40);
	if (animal == 2)
		throw animal;
	if (animal == 3)
		return static_cast<int>(std::vector<int>(3).at(3));
	return animal * 2;
}

__attribute__((noinline, noipa)) int
visit(int animal, int depth)
{
	Cage cage(depth ? "corridor" : "cage");
	return (depth ? visit(animal, depth - 1) : feed(animal)) + 1;
}

__attribute__((noinline, noipa)) int
keeper(int animal)
{
	try {
		Cage cage("lodge");
		return visit(animal, 1);
	} catch (Escape &escape) {
		say("  keeper: %s, %d m", escape.what(), escape.distance);
		escape.distance += 60;
		throw;
	} catch (int number) {
		say("  keeper: number %d", number);
		throw Escape("number", number);
	}
}

__attribute__((noinline, noipa)) int
director(int animal)
{
	try {
		return keeper(animal);
	} catch (const Escape &escape) {
		say("  director: %s, %d m", escape.what(), escape.distance);
		try {
			throw std::logic_error("no insurance");
		} catch (const std::exception &other) {
			say("  lawyer: %s", other.what());
		}
		return -escape.distance;
	} catch (const std::out_of_range &) {
		say("  director: out of range");
		return -1;
	}
}

__attribute__((noinline, noipa)) std::string
count_words(const std::string &text)
{
	std::map<std::string, int> words;
	std::string word;
	for (char c : text + " ")
		if (c != ' ')
			word += c;
		else if (!word.empty()) {
			words[word]++;
			word.clear();
		}
	std::string line;
	for (const auto &[key, count] : words)
		line += (line.empty() ? "" : " ") + key + "=" + std::to_string(count);
	return line;
}

} // namespace zoo

int
case_cxx(int, char **)
{
	for (int animal = 0; animal < 4; animal++)
		say("animal %d: %d", animal, zoo::director(animal));
	say("cages still open: %d", zoo::Cage::open);
	say("%s", zoo::count_words("a lion and a bear and a rather long-winded rhinoceros").c_str());
	std::vector<std::string> names;
	for (int i = 0; i < 20; i++)
		names.insert(names.begin() + i / 2, std::string(i, static_cast<char>('a' + i)));
	size_t sum = 0;
	for (size_t i = 0; i < names.size(); i++)
		sum += i * names[i].size();
	say("%zu names, %zu", names.size(), sum);
	return 13;
}
