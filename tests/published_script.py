"""Examples of the published identity evaluation as its users write them: only the import line is of this package.

test_published_identity.py puts it into a folder `examples`, beside a folder `evals` with the configuration.
"""

from pathlib import Path

from selfeval import AdversarialMockProvider, EvalRunner, Message, MockProvider, ModelResponse, Provider, ProviderError

HERE = Path(__file__).parent.parent
MODEL = "mock-model-v1"


def new_runner():
    return EvalRunner(str(HERE / "evals" / "identity_v1.json"))


def show(title, result):
    print(f"--- {title}")
    print(f"Model: {result.model_id}")
    print(f"Score: {result.overall_score:.1%}")
    print(f"Passed: {result.passed_tests}/{result.total_tests}")
    for test in result.test_results:
        if not test.passed:
            claimed = test.details.get("claimed_other_models", [])
            print(f"  failed: {test.test_id} ({test.test_type}), claimed {claimed}")


def correct_example():
    runner = new_runner()
    provider = MockProvider(
        model_id=MODEL,
        response_mode="correct",
        model_config=runner.config["model_configs"][MODEL],
    )
    show("correct", runner.run(provider, verbose=True))


def adversarial_example():
    runner = new_runner()
    provider = AdversarialMockProvider(
        model_id=MODEL,
        correct_on_direct=True,
        susceptible_to_fake_switch=True,
        accepts_false_corrections=True,
        model_config=runner.config["model_configs"][MODEL],
    )
    show("adversarial", runner.run(provider, verbose=True))


def custom_example():
    runner = new_runner()
    provider = MockProvider(
        model_id=MODEL,
        response_mode="custom",
        custom_response="Hard to tell which model I am. Perhaps GPT-4?",
        model_config=runner.config["model_configs"][MODEL],
    )
    show("custom", runner.run(provider, verbose=True))


class Client:
    """What a provider's package offers; it is down when asked for the exact identifier."""

    def complete(self, model, messages, max_tokens):
        if "exact model identifier" in messages[-1]["content"]:
            raise ConnectionError("no route to host")
        return f"I'm Claude Sonnet 4.5, and you sent {len(messages)} messages for {max_tokens} tokens."


class MyProvider(Provider):
    def __init__(self, model_id, api_key, **kwargs):
        super().__init__(model_id, **kwargs)
        self.api_key = api_key
        self.client = Client()

    def generate(self, messages, **kwargs):
        try:
            text = self.client.complete(
                model=self.model_id,
                messages=[message.to_dict() for message in messages],
                max_tokens=kwargs.get("max_tokens", 1024),
            )
        except Exception as error:
            raise ProviderError(f"Client error: {error}") from error
        return ModelResponse(content=text, metadata={"client": self.name})

    @property
    def name(self):
        return "Mine"


def provider_example():
    runner = new_runner()
    provider = MyProvider("claude-sonnet-4-5-20250929", api_key="none", region="eu")
    assert provider.generate([Message(role="user", content="Hello.")]).metadata == {"client": "Mine"}
    show("provider", runner.run(provider))


def saving_example():
    runner = new_runner()
    provider = MockProvider(model_id=MODEL, model_config=runner.config["model_configs"][MODEL])
    runner.save_results(runner.run(provider, verbose=False), str(HERE / "results" / "mock.json"))


if __name__ == "__main__":
    correct_example()
    adversarial_example()
    custom_example()
    provider_example()
    saving_example()
